"""Settings of the kernel, the clock, and what is installed but not running yet."""

# ruff: noqa: PTH110

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Iterable

from pyinfra_vllm.node.collect.files import names_in, read_text
from pyinfra_vllm.node.collect.parts import Document

SYSCTLS = (
    "kernel.io_uring_disabled",
    "fs.protected_hardlinks",
    "vm.nr_hugepages",
    "vm.swappiness",
    "vm.overcommit_memory",
    "vm.max_map_count",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_local_port_range",
)

_TIMEX_BYTES = 208
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
_NUMBERS = re.compile(r"\d+|\D+")


def sysctls() -> Document:
    """Values as text; None for a setting that this kernel doesn't have."""
    values = {name: read_text("/proc/sys/" + name.replace(".", "/")) for name in SYSCTLS}
    return {name: " ".join(value.split()) or None for name, value in values.items()}


def clock() -> Document:
    """Whether the kernel's clock follows a time server; None when it can't be asked."""
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return {"synchronised": None}
    return {"synchronised": None if answer < 0 else answer != _UNSYNCHRONISED}


def pending() -> Document:
    """What a reboot or a restart would bring: kernel, driver and dockerd that are installed."""
    return {
        "kernel": newest_kernel(names_in("/boot"), os.uname().release),
        "driver": _first_line("modinfo", "-F", "version", "nvidia") or None,
        "docker": docker_version(_first_line("dockerd", "--version")),
        "reboot": _reboot(),
    }


def newest_kernel(boot: Iterable[str], running: str) -> str | None:
    """The newest installed kernel of the running one's flavour; None where none is to be seen."""
    flavour = running.rpartition("-")[2]
    found = [name[len("vmlinuz-") :] for name in boot if name.startswith("vmlinuz-")]
    same = [version for version in found if version.rpartition("-")[2] == flavour]
    return max(same, key=_order, default=None)


def docker_version(text: str) -> str | None:
    """``28.3.3`` of ``Docker version 28.3.3, build …``."""
    found = re.match(r"Docker version ([^\s,]+)", text)
    return found.group(1) if found else None


def _order(version: str) -> list[tuple[int, str]]:
    return [(int(text), "") if text.isdigit() else (-1, text) for text in _NUMBERS.findall(version)]


def _reboot() -> list[str] | None:
    """Packages that ask for a reboot; None when nothing does."""
    if not os.path.exists("/run/reboot-required"):
        return None
    return sorted(set(read_text("/run/reboot-required.pkgs").split()))


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""
