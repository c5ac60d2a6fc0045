"""The process that a run is, so that a later run on the same machine can tell that it is gone."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


def mine() -> dict[str, Any] | None:
    """This process, as no other one ever is; None where the machine doesn't tell (no Linux)."""
    started = _started(os.getpid())
    try:
        return {**_place(), "pid": os.getpid(), "started": started} if started else None
    except OSError:
        return None


def is_gone(process: Mapping[str, Any]) -> bool:
    """Whether it was a process of this user on this machine, and has ended.

    Of another machine, boot, container or user nothing is known: then it isn't gone.
    """
    try:
        if {key: process.get(key) for key in _place()} != _place():
            return False
        return bool(_started(int(process["pid"])) != process["started"])
    except (OSError, LookupError, ValueError, TypeError):
        return False


def _place() -> dict[str, Any]:
    """Where a pid means what it means here: host, boot, namespace of pids; and whose it is."""
    return {
        "host": socket.gethostname(),
        "boot": (_PROC / "sys/kernel/random/boot_id").read_text().strip(),
        "pids": os.readlink(_PROC / "self/ns/pid"),  # noqa: PTH115
        "user": os.getuid(),
    }


def _started(pid: int) -> int | None:
    """Clock ticks from the boot to the start of a process; None when it has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except FileNotFoundError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])
