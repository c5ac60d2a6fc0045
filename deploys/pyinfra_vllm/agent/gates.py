"""What must hold before an engine starts: mounts, address, ports. Each gate raises Unmet."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from .errors import Unmet
from .launch import Launch, Mount

_LISTEN = "0A"


def check_mounts(mounts: tuple[Mount, ...], composed: str | None) -> None:
    """Every source is there, or is made where the release says so."""
    for mount in mounts:
        if mount.create:
            Path(mount.source).mkdir(mode=0o755, parents=True, exist_ok=True)
        elif mount.source != composed and not os.path.lexists(mount.source):
            raise Unmet(
                f"{mount.source} is not on this node, and the container mounts it at "
                f"{mount.target}: is its file system mounted?"
            )
        elif mount.read_only and mount.source != composed and _is_empty_folder(mount.source):
            raise Unmet(f"{mount.source} is an empty folder: is its file system mounted?")


def _is_empty_folder(path: str) -> bool:
    return Path(path).is_dir() and not any(Path(path).iterdir())


def check_address(address: str | None) -> None:
    """The node's fabric address is on one of its interfaces; after a boot it can be late."""
    if not address:
        return
    try:
        family, kind, protocol, _, bindable = socket.getaddrinfo(
            address, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(bindable)
    except socket.gaierror:
        raise Unmet(f"fabric address {address!r} is no address; see vllm_fabric_address") from None
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise Unmet(f"fabric address {address}: {error.strerror}") from None
        raise Unmet(
            f"fabric address {address} is on no interface of this node: is the link up? "
            "(ip address show)"
        ) from None


def ports(launch: Launch) -> tuple[int, ...]:
    """Ports that the head's engine listens on: the API and the rendezvous. Workers: none."""
    if not launch.is_head:
        return ()
    found = [launch.api.port]
    for option, value in zip(launch.argv, launch.argv[1:], strict=False):
        if option == "--master-port" and value.isdigit():
            found.append(int(value))
    return tuple(dict.fromkeys(found))


def check_ports(wanted: tuple[int, ...]) -> None:
    """Nobody listens on the ports; who does is named."""
    for port in wanted:
        inode = _listener(port)
        if inode is not None:
            raise Unmet(
                f"port {port} is taken by {_owner(inode)}; "
                "stop it, or give this recipe another port"
            )


def _listener(port: int) -> str | None:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                return fields[9]
    return None


def _owner(inode: str) -> str:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(fd.readlink()) == f"socket:[{inode}]" for fd in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                return f"pid {process.name} ({words.decode(errors='replace').strip()[:120]})"
        except OSError:
            continue
    return "a process that can't be seen from here"
