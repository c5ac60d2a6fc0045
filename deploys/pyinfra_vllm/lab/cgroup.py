"""A cgroup of its own for each machine, in every hierarchy of this host (v1, hybrid or v2).

Machines that share a cgroup can't start their units (step CGROUP), so each one
gets a group at the root of every hierarchy before systemd-nspawn starts in it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyinfra_vllm.errors import UserError

_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy; ``unified`` is cgroup v2."""

    mount: Path
    unified: bool


def hierarchies(mountinfo: str | None = None) -> tuple[Hierarchy, ...]:
    """The writable hierarchies below /sys/fs/cgroup in ``mountinfo`` (default: of this process)."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    found: dict[Path, Hierarchy] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        mount, kind = Path(before.split()[4]), after.split()[0]
        if kind in ("cgroup", "cgroup2") and mount.is_relative_to("/sys/fs/cgroup"):
            found[mount] = Hierarchy(mount, kind == "cgroup2")
    return tuple(found.values())


@dataclass(frozen=True)
class Cgroup:
    """The group ``name`` in all hierarchies."""

    name: str

    def _folders(self) -> list[Path]:
        return [hierarchy.mount / self.name for hierarchy in hierarchies()]

    def create(self) -> None:
        """Make the group in every hierarchy, ready to be joined."""
        found = hierarchies()
        if not found:
            raise UserError("no cgroup hierarchy is mounted below /sys/fs/cgroup; the lab needs it")
        for hierarchy in found:
            folder = hierarchy.mount / self.name
            if hierarchy.unified:
                _enable_controllers(hierarchy.mount)
            folder.mkdir(exist_ok=True)
            if not hierarchy.unified:
                _inherit_cpuset(hierarchy.mount, folder)

    def join(self) -> None:
        """Move the calling process into the group."""
        for folder in self._folders():
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def pids(self) -> set[int]:
        """All processes in the group and below it, in any hierarchy."""
        found: set[int] = set()
        for folder in self._folders():
            for procs in folder.rglob("cgroup.procs") if folder.is_dir() else ():
                with contextlib.suppress(OSError):
                    found.update(int(pid) for pid in procs.read_text().split())
        return found

    def kill(self) -> None:
        """SIGKILL until nothing is left; UserError when something survives ten seconds."""
        deadline = time.monotonic() + _KILL_SECONDS
        while pids := self.pids():
            _signal_all(pids)
            if time.monotonic() > deadline:
                raise UserError(f"cgroup {self.name}: processes {sorted(pids)} can't be killed")
            time.sleep(0.05)

    def remove(self) -> None:
        """Remove the (empty) group and everything below it from every hierarchy."""
        for folder in self._folders():
            deadline = time.monotonic() + _KILL_SECONDS
            while folder.is_dir() and not _remove_tree(folder):
                if time.monotonic() > deadline:
                    raise UserError(f"cgroup {folder}: can't be removed")
                time.sleep(0.05)


def starting_with(prefix: str) -> list[Cgroup]:
    """All groups at the root of some hierarchy whose name starts with ``prefix``."""
    names = {
        path.name
        for hierarchy in hierarchies()
        for path in hierarchy.mount.glob(f"{prefix}*")
        if path.is_dir()
    }
    return [Cgroup(name) for name in sorted(names)]


def _signal_all(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _enable_controllers(mount: Path) -> None:
    """Let children of the root use every controller; those in use elsewhere are left out."""
    for controller in (mount / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            (mount / "cgroup.subtree_control").write_text(f"+{controller}")


def _inherit_cpuset(parent: Path, folder: Path) -> None:
    """A new v1 cpuset is empty and can't be joined before it has CPUs and memory nodes."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists():
            (folder / name).write_text((parent / name).read_text())


def _remove_tree(folder: Path) -> bool:
    children = sorted(path for path in folder.rglob("*") if path.is_dir())
    for path in [*reversed(children), folder]:
        with contextlib.suppress(OSError):
            path.rmdir()
    return not folder.is_dir()
