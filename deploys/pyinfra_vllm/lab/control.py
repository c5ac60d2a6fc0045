"""``pyinfra-vllm lab status``, ``ssh``, ``reboot`` and ``kill``: one running lab."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import host, machine, ssh, state
from pyinfra_vllm.lab.commands import each
from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.shell import locked, say

_REBOOT_SECONDS = 90.0


def status(name: str) -> bool:
    """Print one line a node; True when all are up with a running dockerd."""
    layout = state.require(name)
    docker: dict[str, str] = {}

    def look(node: Machine) -> None:
        if machine.is_on(layout, node):
            answer = ssh.look(layout, node, "systemctl is-active docker")
            docker[node.name] = answer.stdout.strip() or "no answer to ssh"

    each(layout.machines, look)
    for node in layout.machines:
        power = "up" if node.name in docker else "down"
        say(f"{node.name:12} {node.address:15} {power:5} dockerd {docker.get(node.name, '-')}")
    return all(docker.get(node.name) == "active" for node in layout.machines)


def open_ssh(name: str, node: str, command: Sequence[str]) -> None:
    """Become an ssh to the node; several words are quoted, a single one is a shell line."""
    layout = state.require(name)
    line = command[0] if len(command) == 1 else shlex.join(command)
    words = ssh.argv(layout, layout.machine(node), *([line] if command else []))
    os.execvp(words[0], words)


def reboot(name: str, node: str) -> None:
    """Reboot the node in order and return when it answers ssh again."""
    host.require_root()
    layout = state.require(name)
    target = layout.machine(node)
    with locked(f"lab.{name}"):
        began = time.monotonic()
        _wait_for_end(machine.reboot(layout, target), target.name)
        ssh.wait(layout, target, _REBOOT_SECONDS)
        say(f"{target.name} is back after {time.monotonic() - began:.1f} s")


def kill(name: str, node: str) -> None:
    """Cut the node's power; it stays off until the next ``up``."""
    host.require_root()
    layout = state.require(name)
    target = layout.machine(node)
    with locked(f"lab.{name}"):
        machine.kill(layout, target)
    say(f"{target.name} is off; {_up(layout)} starts it")


def _wait_for_end(pid: int, name: str) -> None:
    deadline = time.monotonic() + _REBOOT_SECONDS
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            raise UserError(f"{name} didn't shut down within {_REBOOT_SECONDS:.0f} s")
        time.sleep(0.05)


def _up(layout: Layout) -> str:
    return f"`pyinfra-vllm lab --name {layout.name} up`"
