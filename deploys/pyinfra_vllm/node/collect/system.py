"""The machine: kernel, memory, disks."""

# ruff: noqa: PTH116

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

from pyinfra_vllm.node.collect.files import existing_ancestor
from pyinfra_vllm.node.collect.parts import Document


def system() -> Document:
    """Who and what the node is; sizes in bytes, times in seconds."""
    kernel = os.uname()
    memory = _memory()
    return {
        "hostname": kernel.nodename,
        "kernel": kernel.release,
        "architecture": kernel.machine,
        "distribution": _distribution(),
        "boot_id": _line("/proc/sys/kernel/random/boot_id"),
        "uptime": float(_line("/proc/uptime").split()[0]),
        "now": time.time(),
        "uid": os.getuid(),
        "python": "%d.%d.%d" % sys.version_info[:3],  # noqa: UP031
        "cpus": len(os.sched_getaffinity(0)),
        "memory_total": memory["MemTotal"],
        "memory_available": memory["MemAvailable"],
        "swap_total": memory.get("SwapTotal", 0),
        "swap_free": memory.get("SwapFree", 0),
        "cma_total": memory.get("CmaTotal"),
        "cma_free": memory.get("CmaFree"),
    }


def disks(paths: Iterable[str]) -> Document:
    """Space below each path; for one that doesn't exist, of the folder it would be made in."""
    return {path: disk(path) for path in paths}


def disk(path: str) -> Document:
    """Total, and free for an ordinary user, in bytes."""
    place = existing_ancestor(path)
    space = os.statvfs(place)
    return {
        "total": space.f_blocks * space.f_frsize,
        "free": space.f_bavail * space.f_frsize,
        "device": os.stat(place).st_dev,
    }


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().strip()


def _memory() -> dict[str, int]:
    sizes = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            words = rest.split()
            sizes[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return sizes


def _distribution() -> str:
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            for line in file:
                if line.startswith("PRETTY_NAME="):
                    return line.partition("=")[2].strip().strip('"')
    except OSError:
        pass
    return ""
