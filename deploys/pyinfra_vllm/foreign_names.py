"""What others run on a node, by the name that an operator gives it to have it stopped. Pure.

A container and a system unit have a name. A process in neither is its pid and the node, so
that a name never means two processes: ``4711@spark-0``.
"""

from __future__ import annotations

import re

_PROCESS = re.compile(r"([1-9][0-9]*)@(.+)")


def of_process(pid: int, node: str) -> str:
    """Name of a process; empty for one that can't be seen (pid 0)."""
    return f"{pid}@{node}" if pid else ""


def process(name: str) -> tuple[int, str] | None:
    """Pid and node in the name of a process; None when it is no such name."""
    found = _PROCESS.fullmatch(name)
    return (int(found[1]), found[2]) if found else None


def is_unit(name: str) -> bool:
    """Whether it is the name of a system unit, else that of a container."""
    return name.endswith(".service")
