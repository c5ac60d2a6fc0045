"""Copy ranges of a shard: at a limited rate, told of, safe on disk before they count as done."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ranges
from .copies import Tell
from .errors import Unmet
from .ranges import Range, size_shown

_PIECE = 8 << 20
_SYNC_EVERY = 256 << 20
_TELL_SECONDS = 5.0


@dataclass
class Work:
    """``there`` is copied to ``here``, ``whole`` bytes at ``rate`` a second (0: no limit).

    ``note`` hears which ranges are on disk, with those that were ``done`` before.
    """

    name: str
    there: int
    here: int
    rate: int
    whole: int
    done: list[Range]
    note: Callable[[list[Range]], None]
    tell: Tell
    copied: int = 0
    unsaved: list[Range] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)

    def copy(self, start: int, end: int) -> str:
        """Copy one range; sha256 of its content."""
        digest = hashlib.sha256()
        while start < end:
            data = os.pread(self.there, min(_PIECE, end - start), start)
            if not data:
                raise Unmet(f"the shard of {self.name} became shorter while it was copied")
            _write(self.here, data, start)
            digest.update(data)
            self.unsaved.append((start, start + len(data)))
            start += len(data)
            self.copied += len(data)
            if ranges.total(self.unsaved) >= _SYNC_EVERY:
                self.save()
            self._slow_down()
            self._say()
        return digest.hexdigest()

    def save(self) -> None:
        """Bring to disk what was written, note it, and leave the page cache to others."""
        os.fdatasync(self.here)
        for start, end in ranges.merged(self.unsaved):
            for descriptor in (self.there, self.here):
                os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)
        self.done = list(ranges.merged([*self.done, *self.unsaved]))
        self.unsaved.clear()
        self.note(self.done)

    def _slow_down(self) -> None:
        if self.rate:
            ahead = self.copied / self.rate - (time.monotonic() - self.began)
            time.sleep(max(0.0, ahead))

    def _say(self) -> None:
        now = time.monotonic()
        if now - self.said < _TELL_SECONDS and self.copied < self.whole:
            return
        self.said = now
        speed = self.copied / max(now - self.began, 0.001)
        left = (self.whole - self.copied) / max(speed, 1.0)
        self.tell(
            f"{self.name}: {size_shown(self.copied)} of {size_shown(self.whole)}, "
            f"{size_shown(speed)}/s, {left:.0f} s left"
        )


def _write(here: int, data: bytes, start: int) -> None:
    while data:
        written = os.pwrite(here, data, start)
        start, data = start + written, data[written:]
