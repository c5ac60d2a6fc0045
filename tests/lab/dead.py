"""What can be dead on a node of a lab while the node itself answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .stub.gang import Gang

_SERVER = """
import ctypes, os, stat, time
if not os.path.exists("/dev/fuse"):
    os.mknod("/dev/fuse", 0o600 | stat.S_IFCHR, os.makedev(10, 229))
server = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"dead-nas", b"/mnt/nas", b"fuse", 0, options):
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
time.sleep(3600)
"""
"""A file server that never answers: whoever touches its mount waits, as for a dead NFS server."""

_MOUNTED = "timeout 20 sh -c 'until grep -q ^dead-nas /proc/mounts; do sleep 0.1; done'"
_UNITS = "docker.socket docker.service"


@contextmanager
def nas(gang: Gang, rank: int) -> Iterator[None]:
    """The file server of a node hangs."""
    gang.ask(rank, "cat > /run/dead-nas.py", _SERVER)
    gang.ask(rank, "systemd-run --quiet --collect --unit=dead-nas python3 /run/dead-nas.py")
    try:
        gang.ask(rank, _MOUNTED)
        yield
    finally:
        gang.ask(rank, "umount -l /mnt/nas; systemctl stop dead-nas; rm /run/dead-nas.py")


@contextmanager
def dockerd(gang: Gang, rank: int) -> Iterator[None]:
    """The docker daemon of a node hangs; its containers run on."""
    gang.ask(rank, "systemctl kill --kill-who=main --signal=STOP docker")
    try:
        yield
    finally:
        gang.ask(rank, "systemctl kill --kill-who=main --signal=CONT docker")


@contextmanager
def no_dockerd(gang: Gang, rank: int) -> Iterator[None]:
    """Nobody runs docker on a node, and neither a connection nor our unit starts it."""
    gang.ask(rank, f"systemctl mask --quiet --runtime {_UNITS}; systemctl stop {_UNITS}")
    try:
        yield
    finally:
        gang.ask(rank, f"systemctl unmask --quiet --runtime {_UNITS}; systemctl start {_UNITS}")
