"""Interfaces and addresses."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
from collections.abc import Iterable
from typing import Any

from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.parts import Document

_SIOCGIFADDR = 0x8915


def interfaces() -> list[Document]:
    """Every interface with its addresses, MTU, state, and speed in Mb/s where the link has one."""
    try:
        done = subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True)
        addresses = from_ip(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.CalledProcessError):
        addresses = _from_kernel()
    return [_interface(name, addresses[name]) for name in sorted(addresses)]


def from_ip(shown: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """Addresses by interface in the output of ``ip -j addr``."""
    return {
        link["ifname"]: [address["local"] for address in link["addr_info"] if "local" in address]
        for link in shown
        if "ifname" in link
    }


def _from_kernel() -> dict[str, list[str]]:
    """The same without iproute2; of several IPv4 addresses of an interface only the first."""
    addresses: dict[str, list[str]] = {name: [] for _, name in socket.if_nameindex()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name, found in addresses.items():
            try:
                request = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            found.append(socket.inet_ntoa(answer[20:24]))
    for row in map(str.split, read_text("/proc/net/if_inet6").splitlines()):
        packed = bytes.fromhex(row[0])
        addresses.setdefault(row[5], []).append(socket.inet_ntop(socket.AF_INET6, packed))
    return addresses


def _interface(name: str, addresses: list[str]) -> Document:
    folder = f"/sys/class/net/{name}"
    speed = read_text(f"{folder}/speed").strip()
    return {
        "name": name,
        "addresses": addresses,
        "mtu": int(read_text(f"{folder}/mtu").strip() or 0),
        "state": read_text(f"{folder}/operstate").strip(),
        "mac": read_text(f"{folder}/address").strip(),
        "speed": int(speed) if speed.isdigit() and int(speed) else None,
    }
