"""Holes of a file: ranges that were never written and read as zeros, with no error.

``lseek`` with SEEK_DATA and SEEK_HOLE (lseek(2)) tells them without reading. A range that
was only reserved (fallocate) counts as a hole, too. A block is there or not as a whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from .ranges import Range, merged

_LARGEST_BLOCK = 128 * 1024


def holes(descriptor: int, start: int, end: int) -> Iterator[Range]:
    """The holes between ``start`` and ``end``; what is past the end of the file is one, too."""
    position = start
    while position < end:
        hole = _seek(descriptor, position, os.SEEK_HOLE, position)
        if hole >= end:
            return
        data = _seek(descriptor, hole, os.SEEK_DATA, end)
        yield hole, min(data, end)
        position = data


def data(descriptor: int, size: int) -> Iterator[Range]:
    """The ranges below ``size`` that are no holes."""
    position = 0
    for hole, end in holes(descriptor, 0, size):
        if position < hole:
            yield position, hole
        position = end
    if position < size:
        yield position, size


def block(descriptor: int) -> int:
    """Bytes of a block, the smallest hole."""
    return max(512, min(os.fstat(descriptor).st_blksize, _LARGEST_BLOCK))


def are_told(descriptor: int) -> bool:
    """False on a file system that has holes and doesn't tell them (it may say all is data)."""
    status = os.fstat(descriptor)
    if status.st_blocks * 512 >= status.st_size * 0.75:
        return True
    return next(holes(descriptor, 0, status.st_size), None) is not None


def differing_edge(here: int, there: int, wanted: Iterable[Range]) -> Range | None:
    """The first block at an end of a range in which the two files differ.

    Only those blocks are read: a block is there or not as a whole and can't tell whether its
    last byte was written.
    """
    size = block(here)
    for start, end in wanted:
        for low, high in _edges(start, end, size):
            if os.pread(here, high - low, low) != os.pread(there, high - low, low):
                return low, high
    return None


def _edges(start: int, end: int, block: int) -> tuple[Range, ...]:
    """The first and the last block of a range, as far as they are in it."""
    first = min(end, (start // block + 1) * block)
    last = max(first, (end - 1) // block * block)
    return merged([(start, first), (last, end)])


def _seek(descriptor: int, position: int, whence: int, past_the_end: int) -> int:
    try:
        return os.lseek(descriptor, position, whence)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return past_the_end
