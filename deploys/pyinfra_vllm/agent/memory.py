"""Is there room for a start: memory that the engine will take, and space on the disks."""

from __future__ import annotations

import itertools
import os
import pwd
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import Unmet
from .launch import Launch

_GIB = 1 << 30
_FREE = 64 << 20
"""Bytes that must be free on a disk: less, and neither docker nor the agent can work."""
_DEFAULT_SHARE = 0.9
"""vLLM's own default for ``--gpu-memory-utilization``."""
_SECONDS = 20.0
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def check_disks(folders: Iterable[str]) -> None:
    """Unmet when a disk is full."""
    for folder in folders:
        try:
            state = os.statvfs(folder)
        except OSError:
            continue
        free = state.f_bavail * state.f_frsize
        if free < _FREE:
            raise Unmet(
                f"the disk of {folder} is full: {free >> 20} MiB are free, "
                f"{_FREE >> 20} MiB are needed; make room"
            )


def check(launch: Launch, meminfo: Path = Path("/proc/meminfo")) -> None:
    """Unmet when the unified memory of a GB10 has no room for the engine.

    vLLM refuses to start unless its share of the whole memory is free; whether page
    cache counts as free differs between versions, so it is dropped when it is in the way.
    """
    if "--gpus" not in launch.options or not _is_unified():
        return
    foreign = [line for line in _compute_apps() if line]
    if foreign:
        raise Unmet(f"the GPU's memory is in use by {'; '.join(foreign)}; end it")
    needed = share(launch.argv)
    known = _meminfo(meminfo)
    needed_bytes = int(needed * known["MemTotal"]) + _GIB
    if known["MemFree"] < needed_bytes:
        _DROP_CACHES.write_text("1")
        known = _meminfo(meminfo)
    if known["MemAvailable"] < needed_bytes:
        raise Unmet(
            f"{known['MemAvailable'] / _GIB:.1f} GiB of memory are available, the engine needs "
            f"{needed_bytes / _GIB:.1f} GiB (--gpu-memory-utilization {needed:g} of "
            f"{known['MemTotal'] / _GIB:.1f} GiB, and 1 GiB)"
        )


def share(argv: tuple[str, ...]) -> float:
    """The value of ``--gpu-memory-utilization``."""
    words = [part for word in argv for part in word.split("=", 1)]
    for word, value in itertools.pairwise(words):
        if word.replace("_", "-") == "--gpu-memory-utilization":
            return float(value)
    return _DEFAULT_SHARE


def _meminfo(path: Path) -> dict[str, int]:
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}


def _is_unified() -> bool:
    return any("N/A" in line for line in query("--query-gpu=memory.total"))


def _compute_apps() -> Iterable[str]:
    for line in query("--query-compute-apps=pid,used_memory,process_name"):
        pid, used, name = (word.strip() for word in line.split(",", 2))
        if used.isdigit() and int(used) > 1024:
            yield f"{name} (pid {pid}, user {_user(pid)}, {used} MiB)"


def _user(pid: str) -> str:
    try:
        return pwd.getpwuid(Path("/proc", pid).stat().st_uid).pw_name
    except (OSError, KeyError):
        return "unknown"


def query(what: str) -> list[str]:
    """Lines of one nvidia-smi query; none where it is missing or late."""
    argv = ["nvidia-smi", what, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
