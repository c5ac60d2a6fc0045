"""Keys of a lab: one that opens the nodes, and the nodes' own host keys, known from the start."""

from __future__ import annotations

from pathlib import Path

from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.shell import run, write


def ensure(layout: Layout) -> None:
    """Make what is missing, then the known_hosts file that names every node and address."""
    _ensure_key(layout.key, f"lab {layout.name}")
    lines = []
    for machine in layout.machines:
        _ensure_key(host_key(layout, machine), machine.name)
        kind, key = public(host_key(layout, machine)).split()[:2]
        lines.append(f"{machine.address},{machine.name} {kind} {key}\n")
    write(layout.known_hosts, "".join(lines))


def host_key(layout: Layout, machine: Machine) -> Path:
    return layout.key.with_name(f"{machine.name}_host_ed25519_key")


def public(key: Path) -> str:
    return key.with_name(key.name + ".pub").read_text()


def _ensure_key(path: Path, comment: str) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])
