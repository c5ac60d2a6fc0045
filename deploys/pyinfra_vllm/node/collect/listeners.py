"""Who listens on the ports that a gang needs: by /proc alone, as ``ss`` may be missing."""

# ruff: noqa: PTH115, PTH208

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterable

from pyinfra_vllm.node.collect.engine import ask
from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.parts import Document, Unavailable
from pyinfra_vllm.node.collect.secrets import masked

_LISTEN = "0A"  # include/net/tcp_states.h
_CONTAINER = re.compile(r"[0-9a-f]{64}")
_UNIT = re.compile(r"/system\.slice/(?:[^/\n]+\.slice/)*([^/\n]+\.service)")
# What these run is not theirs, and nobody may be told to stop them.
_HOSTS_OF_OTHERS = ("docker.service", "containerd.service", "ssh.service", "sshd.service")
_ANSWER_TIME = 1.0


def listeners(ports: Iterable[int]) -> list[Document]:
    """The processes on each port, with the name of the container that they serve, if any.

    Without an answer from dockerd the Id of the container stands for its name.
    """
    found = [{"port": port, **item} for port in ports for item in processes(port)]
    if not any(item["container_id"] or item["process"] == "docker-proxy" for item in found):
        return [{**item, "container": None} for item in found]
    try:
        running = ask("/containers/json", _ANSWER_TIME)
    except (Unavailable, OSError):
        running = []
    return [{**item, "container": _container_name(item, running)} for item in found]


def _container_name(process: Document, running: list[Document]) -> str | None:
    for container in running:
        ports = {item.get("PublicPort") for item in container.get("Ports") or []}
        behind_proxy = process["process"] == "docker-proxy" and process["port"] in ports
        if container["Id"] == process["container_id"] or behind_proxy:
            return str(container["Names"][0]).lstrip("/")
    number: str | None = process["container_id"]
    return number


def processes(port: int | None) -> list[Document]:
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
    words = [word for word in read_text(f"/proc/{pid}/cmdline").split("\0") if word] if pid else []
    return {
        "process": read_text(f"/proc/{pid}/comm").strip() if pid else "",
        "command": masked(words),
        "container_id": container_of(pid),
        "unit": unit_of(pid),
    }


def container_of(pid: int) -> str | None:
    """Id of the container that a process is in, from its cgroup."""
    found = _CONTAINER.search(read_text(f"/proc/{pid}/cgroup")) if pid else None
    return found.group() if found else None


def unit_of(pid: int) -> str | None:
    """System unit whose process it is, from its cgroup; None in a container or a session."""
    text = read_text(f"/proc/{pid}/cgroup") if pid else ""
    found = None if _CONTAINER.search(text) else _UNIT.search(text)
    name = found.group(1) if found else None
    return None if name in _HOSTS_OF_OTHERS else name
