"""Power switch of one node: start, power cut, shut down, reboot, and whether it is on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import cgroup
from pyinfra_vllm.lab.cgroup import Cgroup
from pyinfra_vllm.lab.layout import Layout, Machine

_KEEPER = "pyinfra_vllm.lab.keeper"
# systemd(1): as PID 1 it starts poweroff.target and reboot.target on these signals.
_POWER_OFF = signal.SIGRTMIN + 4
_REBOOT = signal.SIGRTMIN + 5
_POWER_OFF_SECONDS = 30.0
_PROPAGATE = Path("/run/systemd/nspawn/propagate")
"""Where systemd-nspawn leaves a folder for each machine that was killed."""


def group(layout: Layout, machine: Machine) -> Cgroup:
    return Cgroup(f"{_group_prefix(layout.name)}{machine.rank}")


def keepers(layout: Layout) -> Cgroup:
    """The group of all keepers, so that none dies with the session that ran ``up``."""
    return Cgroup(f"{_group_prefix(layout.name)}keepers")


def start(layout: Layout, machine: Machine) -> bool:
    """Switch the node on; False when it is on already."""
    if is_on(layout, machine):
        return False
    group(layout, machine).kill()
    keepers(layout).create()
    layout.log(machine).parent.mkdir(parents=True, exist_ok=True)
    with open(layout.log(machine), "ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", _KEEPER, layout.name, str(machine.rank)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
    return True


def is_on(layout: Layout, machine: Machine) -> bool:
    return any(_keeper_pids(layout.name, machine.rank))


def kill(layout: Layout, machine: Machine) -> None:
    """Cut the power: the keeper first, so that nothing starts the node again."""
    for pid in _keeper_pids(layout.name, machine.rank):
        os.kill(pid, signal.SIGKILL)
    group(layout, machine).kill()


def power_off(layout: Layout, machine: Machine) -> None:
    """Shut the node down in order and wait for it; what takes over 30 s is left to ``kill``."""
    leader = leader_pid(layout, machine)
    if leader is not None:
        os.kill(leader, _POWER_OFF)
    deadline = time.monotonic() + _POWER_OFF_SECONDS
    while is_on(layout, machine) and time.monotonic() < deadline:
        time.sleep(0.1)


def reboot(layout: Layout, machine: Machine) -> int:
    """Ask the node's PID 1 for a reboot; returns that process, which is gone once it happens."""
    leader = leader_pid(layout, machine) if is_on(layout, machine) else None
    if leader is None:
        raise UserError(
            f"{machine.name} is off; `pyinfra-vllm lab --name {layout.name} up` starts it"
        )
    os.kill(leader, _REBOOT)
    return leader


def remove_all(name: str) -> None:
    """Kill every process of the lab ``name`` and remove its cgroups."""
    for pid in _keeper_pids(name):
        os.kill(pid, signal.SIGKILL)
    for found in cgroup.starting_with(_group_prefix(name)):
        found.kill()
        found.remove()
    for folder in _PROPAGATE.glob(f"{name}-[0-9]"):
        shutil.rmtree(folder)


def leader_pid(layout: Layout, machine: Machine) -> int | None:
    """PID 1 of the node as this machine numbers it: one pid namespace below ours."""
    depth = len(_namespace_pids(os.getpid())) + 1
    for pid in group(layout, machine).pids():
        pids = _namespace_pids(pid)
        if len(pids) == depth and pids[-1] == "1":
            return pid
    return None


def _group_prefix(name: str) -> str:
    return f"pyinfra-vllm-lab.{name}."


def _keeper_pids(name: str, rank: int | None = None) -> Iterator[int]:
    """Keepers of the lab ``name`` (of one node when ``rank`` is given), by their command lines."""
    wanted = [_KEEPER, name] + ([] if rank is None else [str(rank)])
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:2] == ["-m"] and words[2 : 2 + len(wanted)] == wanted:
            yield int(path.parent.name)


def _namespace_pids(pid: int) -> list[str]:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
