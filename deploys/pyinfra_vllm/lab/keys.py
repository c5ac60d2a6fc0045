"""Keys of a lab: one that opens the nodes, and the nodes' own host keys, known from the start."""

from __future__ import annotations

import os
from pathlib import Path

from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.shell import run, write


def ensure(layout: Layout) -> None:
    """Make what is missing, then the known_hosts and ssh_config that name every node.

    Under sudo all of it belongs to the user who called, who can then use the lab.
    """
    _ensure_key(layout.key, f"lab {layout.name}")
    known = []
    for machine in layout.machines:
        _ensure_key(host_key(layout, machine), machine.name)
        kind, key = public(host_key(layout, machine)).split()[:2]
        known.append(f"{machine.address},{machine.name} {kind} {key}\n")
    write(layout.known_hosts, "".join(known))
    write(layout.ssh_config, ssh_config(layout))
    folder = layout.key.parent
    for path in (folder, *folder.iterdir()):
        os.chown(path, int(os.environ.get("SUDO_UID", 0)), int(os.environ.get("SUDO_GID", 0)))


def ssh_config(layout: Layout) -> str:
    """An ssh_config(5): the lab's nodes by name, and nothing of the user's own files."""
    hosts = [f"Host {machine.name}\n  HostName {machine.address}\n" for machine in layout.machines]
    return f"""{"".join(hosts)}Host *
  User root
  IdentityFile {layout.key}
  IdentitiesOnly yes
  UserKnownHostsFile {layout.known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  LogLevel ERROR
  ConnectTimeout 2
"""


def host_key(layout: Layout, machine: Machine) -> Path:
    return layout.key.with_name(f"{machine.name}_host_ed25519_key")


def public(key: Path) -> str:
    return key.with_name(key.name + ".pub").read_text()


def _ensure_key(path: Path, comment: str) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])
