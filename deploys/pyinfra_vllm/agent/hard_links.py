"""Hard links into a composed model, and why one can't be made."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from .errors import Unmet
from .ranges import size_shown

_IN_MEMORY = ("tmpfs", "ramfs")
_PROTECTED = Path("/proc/sys/fs/protected_hardlinks")
_INSTEAD = "or say copy = true at the local file, if there is room for a copy"


@dataclass(frozen=True)
class Mount:
    """Where a path lies: mount point, type and source of its file system, device number."""

    point: str
    kind: str
    source: str
    device: int

    def __str__(self) -> str:
        return f"{self.point} ({self.kind}, {self.source})"


def make(target: str, path: Path) -> None:
    """``path`` becomes another name of the file ``target``; Unmet says why it can't."""
    try:
        os.link(target, path, follow_symlinks=False)
    except OSError as error:
        raise Unmet(why_not(error, target, path.parent)) from None


def why_not(error: OSError, target: str, folder: Path) -> str:
    """What to do about ``link()`` from ``target`` into ``folder`` that failed."""
    if error.errno == errno.EXDEV:
        return _across(target, folder)
    if error.errno in (errno.EPERM, errno.EACCES):
        return _forbidden(error, target)
    if error.errno == errno.EMLINK:
        return (
            f"{target} has as many hard links as its file system allows; "
            "remove old composed models, or make a fresh copy of the file"
        )
    return f"{target} can't be hard-linked into {folder.parent}: {error.strerror}"


def _across(target: str, folder: Path) -> str:
    there, here = mount_of(Path(target)), mount_of(folder)
    what = f"{target} ({size_shown(Path(target).stat().st_size)})"
    if here.kind in _IN_MEMORY:
        return (
            f"{what} can't be hard-linked: composed models lie in {here.point}, which is in memory "
            f"({here.kind}), and the file on {there}; put {here.point} on the disk "
            f"(systemctl mask tmp.mount and reboot), {_INSTEAD}"
        )
    if here.device == there.device:
        return (
            f"{what} can't be hard-linked into {folder.parent}: both are on one file system, but "
            f"mounted twice ({there.point} and {here.point}), and a hard link can't cross mounts; "
            "take away the bind mount, or the sandbox of the unit that makes it "
            f"(ProtectSystem=strict), {_INSTEAD}"
        )
    return (
        f"{what} is on {there} and composed models on {here}: different file systems, so no hard "
        f"link can join them; move the file to {here.point}, {_INSTEAD}"
    )


def _forbidden(error: OSError, target: str) -> str:
    owner = Path(target).stat().st_uid
    if os.geteuid() != owner and _is_protected():
        return (
            f"{target} can't be hard-linked: fs.protected_hardlinks=1 allows it only to its owner "
            f"(uid {owner}; this is uid {os.geteuid()}) or to who may write it: run the agent "
            "as root, or change owner or mode of the file"
        )
    return (
        f"{target} can't be hard-linked: {error.strerror}; is it immutable (lsattr; "
        f"chattr -i takes that away), or on a file system without hard links?"
    )


def _is_protected() -> bool:
    try:
        return _PROTECTED.read_text().strip() != "0"
    except OSError:
        return True


def mount_of(path: Path) -> Mount:
    """The mount that ``path`` lies on."""
    real = os.path.realpath(path)
    device = Path(real).stat().st_dev
    found = Mount("/", "unknown", "unknown", device)
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        below = real == point or real.startswith(point.rstrip("/") + "/")
        if below and len(point) >= len(found.point):
            kind, source = right.split()[:2]
            found = Mount(point, kind, source, device)
    return found
