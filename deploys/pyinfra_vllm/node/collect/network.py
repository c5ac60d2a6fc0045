"""Interfaces and addresses."""

# ruff: noqa: PTH110

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterable
from typing import Any

from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.parts import Document

_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B


def interfaces() -> list[Document]:
    """Every interface with its addresses, MTU, state, and speed in Mb/s where the link has one."""
    try:
        done = subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True)
        networks = from_ip(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.CalledProcessError):
        networks = _from_kernel()
    return [_interface(name, networks[name]) for name in sorted(networks)]


def from_ip(shown: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Addresses with prefix (``10.0.0.1/24``) by interface in the output of ``ip -j addr``."""
    return {
        link["ifname"]: [
            f"{address['local']}/{address['prefixlen']}"
            for address in link["addr_info"]
            if "local" in address
        ]
        for link in shown
        if "ifname" in link
    }


def _from_kernel() -> dict[str, list[str]]:
    """The same without iproute2; of several IPv4 addresses of an interface only the first."""
    networks: dict[str, list[str]] = {name: [] for _, name in socket.if_nameindex()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name, found in networks.items():
            try:
                address = _ask_kernel(probe, _SIOCGIFADDR, name)
                mask = _ask_kernel(probe, _SIOCGIFNETMASK, name)
            except OSError:
                continue
            length = int.from_bytes(mask, "big").bit_count()
            found.append(f"{socket.inet_ntoa(address)}/{length}")
    for row in map(str.split, read_text("/proc/net/if_inet6").splitlines()):
        packed = bytes.fromhex(row[0])
        network = f"{socket.inet_ntop(socket.AF_INET6, packed)}/{int(row[2], 16)}"
        networks.setdefault(row[5], []).append(network)
    return networks


def _ask_kernel(probe: socket.socket, request: int, name: str) -> bytes:
    """The IPv4 address in the answer of netdevice(7)."""
    answer = fcntl.ioctl(probe.fileno(), request, struct.pack("256s", name.encode()[:15]))
    return answer[20:24]


def _interface(name: str, networks: list[str]) -> Document:
    folder = f"/sys/class/net/{name}"
    speed = read_text(f"{folder}/speed").strip()
    return {
        "name": name,
        "addresses": [network.partition("/")[0] for network in networks],
        "networks": networks,
        "mtu": int(read_text(f"{folder}/mtu").strip() or 0),
        "state": read_text(f"{folder}/operstate").strip(),
        "mac": read_text(f"{folder}/address").strip(),
        "speed": int(speed) if speed.isdigit() and int(speed) else None,
        "physical": os.path.exists(f"{folder}/device"),
    }
