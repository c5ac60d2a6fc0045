"""Disks of a node: an overlay over the shared root, and a folder of its own for dockerd."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from pyinfra_vllm.lab import keys, network, surroundings, variables
from pyinfra_vllm.lab.host import lacks_sys_resource
from pyinfra_vllm.lab.layout import Layout, Machine
from pyinfra_vllm.lab.shell import attempt, run, write


def ensure(layout: Layout, machine: Machine) -> None:
    """Mount the node's root and write what makes the node itself, if it isn't mounted yet."""
    if layout.root(machine) in mounts_below(layout.state):
        return
    disk = layout.disk(machine)
    for name in ("upper", "work", "root", "docker"):
        (disk / name).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir={layout.lower.resolve()},upperdir={disk}/upper,workdir={disk}/work"
    run(["mount", "-t", "overlay", "-o", layers, machine.name, layout.root(machine)])
    for path, (text, mode) in files(layout, machine).items():
        write(layout.root(machine) / path, text, mode)


def files(layout: Layout, machine: Machine) -> dict[str, tuple[str, int]]:
    """Path below the node's root -> (text, mode) of everything that tells nodes apart."""
    host_key = keys.host_key(layout, machine)
    environ = variables.proxies() | variables.installers()
    return {
        "etc/hostname": (f"{machine.name}\n", 0o644),
        "etc/hosts": (_hosts(layout), 0o644),
        "etc/machine-id": (_machine_id(host_key) + "\n", 0o444),
        "etc/resolv.conf": (surroundings.resolv_conf() or "", 0o644),
        "etc/environment": ("".join(f"{k}={v}\n" for k, v in environ.items()), 0o644),
        # 10 sorts before systemd's own 80-container-host0.network, which would ask for DHCP.
        "etc/systemd/network/10-lab.network": (_network_file(layout, machine), 0o644),
        "etc/docker/daemon.json": (_daemon_json(), 0o644),
        "etc/ssh/ssh_host_ed25519_key": (host_key.read_text(), 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": (keys.public(host_key), 0o644),
        "root/.ssh/authorized_keys": (keys.public(layout.key), 0o600),
        "root/.docker/config.json": (_docker_config(), 0o600),
    }


def mounts_below(folder: Path) -> list[Path]:
    """Mount points at or below ``folder``, the innermost first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        path = Path(_unescape(line.split()[4]))
        if path.is_relative_to(folder):
            found.append(path)
    return found[::-1]


def unmount(folder: Path) -> None:
    """Unmount everything below ``folder``."""
    for path in mounts_below(folder):
        if attempt(["umount", path]).returncode != 0:
            run(["umount", "--lazy", path])


def _unescape(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def _hosts(layout: Layout) -> str:
    lines = [f"{machine.address} {machine.name}" for machine in layout.machines]
    return "\n".join(["127.0.0.1 localhost", "::1 localhost", *lines]) + "\n"


def _machine_id(host_key: Path) -> str:
    """Stable over reboots, different for each node and each making of a lab."""
    return hashlib.sha256(keys.public(host_key).encode()).hexdigest()[:32]


def _network_file(layout: Layout, machine: Machine) -> str:
    return f"""[Match]
Name=host0

[Link]
MTUBytes={network.mtu()}

[Network]
Address={machine.address}/24
Gateway={layout.gateway}
"""


def _daemon_json() -> str:
    """dockerd's own settings: the MTU of the way out, runtimes that accept a GPU node's flags."""
    runtime = {"path": "/usr/local/sbin/lab-runc"}
    config: dict[str, object] = {
        "mtu": network.mtu(),
        "runtimes": {"lab": runtime, "nvidia": runtime},
    }
    if lacks_sys_resource():
        config["default-runtime"] = "lab"
    return json.dumps(config, indent=2) + "\n"


def _docker_config() -> str:
    names = {"http_proxy": "httpProxy", "https_proxy": "httpsProxy", "no_proxy": "noProxy"}
    default = {names[name.lower()]: value for name, value in variables.proxies().items()}
    return json.dumps({"proxies": {"default": default}} if default else {}) + "\n"
