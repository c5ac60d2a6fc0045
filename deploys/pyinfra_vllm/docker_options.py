"""What ``docker run`` is told of a container, and how a running one differs from that. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyinfra_vllm.node.collect.options import capability, profile

Options = Mapping[str, Sequence[str]]

_ALONE = ("--init", "--privileged")
_SEVERAL = ("--cap-add", "--device", "--security-opt")
_JUDGED_ELSEWHERE = ("--gpus",)
_UNITS = "bkmgtp"
_SIZE = re.compile(r"([\d.]+)\s?([kmgtp])?i?b?", re.IGNORECASE)


def told(words: Sequence[str], seccomp: str) -> dict[str, list[str]]:
    """Option -> its values as docker keeps them. ``seccomp``: text of the profile.

    Of an option that is said twice the last one counts, but for those that add up.
    """
    found: dict[str, list[str]] = {"--log-driver": ["none"]}
    rest = iter(words)
    for name in rest:
        value = "true" if name in _ALONE else _as_kept(name, next(rest, ""), seccomp)
        if name in _SEVERAL:
            found.setdefault(name, []).append(value)
        elif name == "--ulimit":
            limit = value.partition("=")[0] + "="
            others = [one for one in found.get(name, []) if not one.startswith(limit)]
            found[name] = [*others, value]
        elif name not in _JUDGED_ELSEWHERE:
            found[name] = [value]
    return {name: sorted(values) for name, values in found.items()}


def _as_kept(name: str, value: str, seccomp: str) -> str:
    if name == "--shm-size":
        return str(size(value))
    if name == "--cap-add":
        return capability(value)
    if name == "--security-opt" and value.startswith("seccomp=/"):
        return f"seccomp={profile(seccomp)}"
    if name == "--ulimit":
        limit, _, numbers = value.partition("=")
        soft, _, hard = numbers.partition(":")
        return f"{limit}={soft}:{hard or soft}"
    return value


def size(text: str) -> int:
    """Bytes of an amount of memory as docker reads it."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"no amount of memory: {text}")
    return int(float(found[1]) * 1024 ** _UNITS.index((found[2] or "b").lower()))


def differences(wanted: Options, found: Options) -> Iterator[str]:
    """One line for each value that is there or missing.

    What the release leaves to docker, whose daemon may have defaults of its own, is no
    difference: the size of ``/dev/shm``, and limits that the release doesn't name.
    """
    for name in sorted({*wanted, *found}):
        there, said = set(found.get(name, ())), set(wanted.get(name, ()))
        if name == "--ulimit":
            limits = {value.partition("=")[0] for value in said}
            there = {value for value in there if value.partition("=")[0] in limits}
        if name == "--shm-size" and not said:
            continue
        yield from (f"container has {name} {_short(value)}" for value in sorted(there - said))
        yield from (f"container lacks {name} {_short(value)}" for value in sorted(said - there))


def _short(value: str) -> str:
    """A digest in part."""
    return re.sub(r"[0-9a-f]{64}", lambda digest: digest[0][:12], value)
