"""What is said with ``--data`` for one run; Refusal for what can't be meant."""

from __future__ import annotations

from pyinfra.api import Host

from pyinfra_vllm import data_names
from pyinfra_vllm.facts.inventory import is_meant
from pyinfra_vllm.facts.refusal import Refusal

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def concerns(host: Host) -> bool:
    """Whether this run is for the gang of ``host``: ``--data gang=NAME`` confines it to one.

    Refusal for a gang that isn't there, and for a misspelt name of ours.
    """
    refuse_misspelt(host)
    return is_meant(host)


def refuse_misspelt(host: Host) -> None:
    """Refusal when a name given with ``--data`` is none of ours and looks like one of ours."""
    inventory = host.inventory
    known = [inventory.get_host_data(host.name), inventory.get_groups_data(host.groups)]
    names = {name for data in (*known, inventory.get_data()) for name in data}
    if lines := data_names.misspelt(inventory.get_override_data(), names):
        raise Refusal("\n".join(["nothing was changed:", *lines]))


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
