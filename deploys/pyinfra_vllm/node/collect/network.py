"""Who listens on the API port; interfaces and addresses."""

# ruff: noqa: PTH115, PTH208

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import struct
import subprocess
from collections.abc import Iterable
from typing import Any

from pyinfra_vllm.node.collect.parts import Document
from pyinfra_vllm.node.collect.secrets import masked

_LISTEN = "0A"  # include/net/tcp_states.h
_SIOCGIFADDR = 0x8915
_CONTAINER = re.compile(r"[0-9a-f]{64}")


def listeners(port: int | None) -> list[Document]:
    """Processes that listen on a TCP port of the node; ``pid`` 0 when it can't be seen."""
    if port is None:
        return []
    sockets = {}
    for table in ("tcp", "tcp6"):
        sockets.update(_listening(f"/proc/net/{table}", port))
    if not sockets:
        return []
    owners = _owners(set(sockets))
    return [
        {"pid": pid, "addresses": sorted({sockets[inode] for inode in inodes}), **_process(pid)}
        for pid, inodes in sorted(owners.items())
    ]


def _listening(table: str, port: int) -> dict[str, str]:
    """Inode -> local address of the sockets of one table that listen on the port."""
    found = {}
    try:
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
    except FileNotFoundError:
        return {}
    for row in rows:
        address, _, number = row[1].partition(":")
        if row[3] == _LISTEN and int(number, 16) == port:
            found[row[9]] = address_of(address)
    return found


def address_of(digits: str) -> str:
    """An address as /proc/net writes it: 32-bit words, each in the byte order of the machine."""
    words = struct.unpack(f">{len(digits) // 8}I", bytes.fromhex(digits))
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))


def _owners(inodes: set[str]) -> dict[int, set[str]]:
    """Pid -> its sockets among ``inodes``; those that nobody visible has are put under 0."""
    links = {f"socket:[{inode}]": inode for inode in inodes}
    owners: dict[int, set[str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        folder = f"/proc/{name}/fd"
        try:
            for descriptor in os.listdir(folder):
                inode = links.get(_readlink(f"{folder}/{descriptor}"))
                if inode:
                    owners.setdefault(int(name), set()).add(inode)
        except OSError:
            continue
    unseen = inodes - {inode for several in owners.values() for inode in several}
    return {**owners, **({0: unseen} if unseen else {})}


def _readlink(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _process(pid: int) -> Document:
    words = [word for word in _read(f"/proc/{pid}/cmdline").split("\0") if word] if pid else []
    return {
        "process": _read(f"/proc/{pid}/comm").strip() if pid else "",
        "command": masked(words),
        "container": container_of(pid),
    }


def container_of(pid: int) -> str | None:
    """Id of the container that a process is in, from its cgroup."""
    found = _CONTAINER.search(_read(f"/proc/{pid}/cgroup")) if pid else None
    return found.group() if found else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


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
    for row in map(str.split, _read("/proc/net/if_inet6").splitlines()):
        packed = bytes.fromhex(row[0])
        addresses.setdefault(row[5], []).append(socket.inet_ntop(socket.AF_INET6, packed))
    return addresses


def _interface(name: str, addresses: list[str]) -> Document:
    folder = f"/sys/class/net/{name}"
    speed = _read(f"{folder}/speed").strip()
    return {
        "name": name,
        "addresses": addresses,
        "mtu": int(_read(f"{folder}/mtu").strip() or 0),
        "state": _read(f"{folder}/operstate").strip(),
        "mac": _read(f"{folder}/address").strip(),
        "speed": int(speed) if speed.isdigit() and int(speed) else None,
    }
