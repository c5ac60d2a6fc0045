"""ssh to the nodes of a lab, with the lab's own configuration and nothing of the user's."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import IO

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.machine import is_on
from pyinfra_vllm.lab.shell import attempt, run

_CONNECT_SECONDS = 2
_NO_CONNECTION = 255


def argv(layout: Layout, machine: Machine, *command: str) -> list[str]:
    return ["ssh", "-F", str(layout.ssh_config), machine.name, *command]


def ask(
    layout: Layout, machine: Machine, command: str, stdin: str | IO[bytes] | None = None
) -> str:
    """Standard output of a shell command on the node; UserError when it fails."""
    return run(argv(layout, machine, command), stdin)


def look(layout: Layout, machine: Machine, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command on the node, whatever comes of it."""
    return attempt(argv(layout, machine, command))


def wait(layout: Layout, machine: Machine, seconds: float) -> None:
    """Return once the node answers ssh; UserError with the end of its console otherwise."""
    deadline = time.monotonic() + seconds
    while not (_listens(machine) and look(layout, machine, "true").returncode == 0):
        if not is_on(layout, machine):
            raise UserError(f"{machine.name} went off while it started{_console(layout, machine)}")
        if time.monotonic() > deadline:
            raise UserError(
                f"{machine.name} ({machine.address}) doesn't answer ssh after {seconds:.0f} s"
                + _console(layout, machine)
            )
        time.sleep(0.1)


def wait_for_docker(layout: Layout, machine: Machine, seconds: float) -> None:
    """Return once the node's dockerd answers; UserError with the end of its journal otherwise."""
    poll = f"timeout {seconds:.0f} sh -c 'until docker version >/dev/null 2>&1; do sleep 0.2; done'"
    code = look(layout, machine, poll).returncode
    if code == _NO_CONNECTION:
        wait(layout, machine, seconds)
        code = look(layout, machine, poll).returncode
    if code != 0:
        journal = look(layout, machine, "journalctl -u docker --lines 15 --no-pager --output cat")
        raise UserError(
            f"{machine.name}: dockerd doesn't answer after {seconds:.0f} s; its journal ends with\n"
            + _indented(journal.stdout.splitlines())
        )


def _console(layout: Layout, machine: Machine) -> str:
    log = layout.log(machine)
    tail = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
    return f"; its console is {log}:\n{_indented(tail)}"


def _indented(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _listens(machine: Machine) -> bool:
    try:
        with socket.create_connection((machine.address, 22), timeout=_CONNECT_SECONDS) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False
