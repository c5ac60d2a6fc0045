"""Copies of local files, for recipes that allow them: holes stay holes, and there must be room."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from . import holes
from .errors import Unmet
from .ranges import Range, size_shown

Tell = Callable[[str], None]
_PIECE = 64 << 20
_RESERVE = 64 << 20
_TELL_SECONDS = 5.0


def stands(path: Path, source: str) -> bool:
    """Whether ``path`` is a copy of ``source``: a file of its own with the same size and time."""
    here, there = path.lstat(), Path(source).stat()
    return (
        stat.S_ISREG(here.st_mode)
        and not os.path.samestat(here, there)
        and (here.st_size, here.st_mtime_ns) == (there.st_size, there.st_mtime_ns)
    )


def make(source: str, path: Path, tell: Tell) -> None:
    """Copy what is on disk of ``source``; Unmet when there is no room for it."""
    with open(source, "rb") as there:
        status = os.fstat(there.fileno())
        _check_room(source, min(status.st_blocks * 512, status.st_size), path.parent)
        with path.open("wb") as here:
            os.ftruncate(here.fileno(), status.st_size)
            data(there.fileno(), here.fileno(), holes.data(there.fileno(), status.st_size), tell)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def data(there: int, here: int, wanted: Iterable[Range], tell: Tell) -> None:
    """Copy these ranges, in the kernel where it can."""
    said = time.monotonic()
    for start, end in wanted:
        while start < end:
            start += _piece(there, here, start, end)
            if time.monotonic() - said > _TELL_SECONDS:
                said = time.monotonic()
                tell(f"copies, is at {size_shown(start)} of {size_shown(end)}")


def _piece(there: int, here: int, start: int, end: int) -> int:
    """Copies the next bytes; how many."""
    count = min(_PIECE, end - start)
    try:
        copied = os.copy_file_range(there, here, count, start, start)
    except OSError:  # older kernels can't between file systems
        data = os.pread(there, min(count, 8 << 20), start)
        copied = os.pwrite(here, data, start)
    if not copied:
        raise Unmet("a local file became shorter while it was copied")
    os.posix_fadvise(there, start, copied, os.POSIX_FADV_DONTNEED)
    return copied


def _check_room(source: str, needed: int, folder: Path) -> None:
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < needed + _RESERVE:
        raise Unmet(
            f"no room for a copy of {source} in {folder.parent}: it takes {size_shown(needed)}, "
            f"{size_shown(free)} are free; make room, or put both on one file system and leave "
            "copy = true out, so that a hard link is enough"
        )
