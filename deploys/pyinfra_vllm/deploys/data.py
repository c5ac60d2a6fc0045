"""What is said with ``--data`` for one run; Refusal for what can't be meant."""

from __future__ import annotations

from pyinfra.api import Host

from pyinfra_vllm.facts.refusal import Refusal

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def flag(host: Host, key: str) -> bool:
    """``--data KEY=true``; False where nothing is said."""
    value = host.data.get(key)
    if value is None:
        return False
    found = _FLAGS.get(str(value).lower())
    if found is None:
        raise Refusal(f"--data {key}={value}: expected true or false")
    return found


def seconds(host: Host, key: str) -> int | None:
    """``--data KEY=600``; None where nothing is said."""
    value = host.data.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdigit() or int(value) < 1:
        raise Refusal(f"--data {key}={value}: expected a whole number of seconds, at least 1")
    return int(value)


def text(host: Host, key: str) -> str | None:
    """``--data KEY=words``; None where nothing is said."""
    value = host.data.get(key)
    return None if value is None else str(value)
