"""ssh to the nodes of a lab, with the lab's key and known hosts and nothing of the user's."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import IO

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.shell import attempt, run

_CONNECT_SECONDS = 2


def argv(layout: Layout, machine: Machine, *command: str) -> list[str]:
    return [
        "ssh",
        "-F", "/dev/null",
        "-i", str(layout.key),
        "-o", "IdentitiesOnly=yes",
        "-o", f"UserKnownHostsFile={layout.known_hosts}",
        "-o", "GlobalKnownHostsFile=/dev/null",
        "-o", "StrictHostKeyChecking=yes",
        "-o", "LogLevel=ERROR",
        "-o", f"ConnectTimeout={_CONNECT_SECONDS}",
        f"root@{machine.address}",
        *command,
    ]  # fmt: skip


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
        if time.monotonic() > deadline:
            log = layout.log(machine)
            tail = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
            raise UserError(
                f"{machine.name} ({machine.address}) doesn't answer ssh after {seconds:.0f} s; "
                f"its console is {log}:\n" + "\n".join(f"  {line}" for line in tail)
            )
        time.sleep(0.1)


def wait_for_docker(layout: Layout, machine: Machine, seconds: float) -> None:
    """Return once the node's dockerd answers; UserError with the end of its journal otherwise."""
    poll = f"timeout {seconds:.0f} sh -c 'until docker version >/dev/null 2>&1; do sleep 0.2; done'"
    if look(layout, machine, poll).returncode == 0:
        return
    journal = look(layout, machine, "journalctl --unit docker --lines 15 --no-pager --output cat")
    raise UserError(
        f"{machine.name}: dockerd doesn't answer after {seconds:.0f} s; its journal ends with\n"
        + "\n".join(f"  {line}" for line in journal.stdout.splitlines())
    )


def _listens(machine: Machine) -> bool:
    try:
        with socket.create_connection((machine.address, 22), timeout=_CONNECT_SECONDS) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False
