"""Make or top up one local copy of a shard: sparse, at unchanged offsets, whole or not at all.

The copy grows in ``NAME.partial`` and is renamed over the old one when it is proven, so a
running engine keeps its inode. ``NAME.partial.json`` says which ranges are safely on disk: a
copy that was cut goes on from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import content, copies, engram, holes, ranges, safetensors, side_manifest
from .copies import Tell
from .errors import Unmet
from .fill_work import Work
from .ranges import Range, size_shown
from .shares import Share, needed_bytes
from .side_manifest import SideManifest

_RESERVE = 256 << 20
_FICLONE = 0x40049409


@dataclass
class Fill:
    """One copy: ``host`` is to stand for ``shard``. ``rate``: bytes a second, 0 for no limit."""

    host: Path
    shard: Path
    share: Share
    rate: int = 0
    distrusted: tuple[Range, ...] = ()
    checksums: dict[str, str] = field(default_factory=dict)

    @property
    def partial(self) -> Path:
        return self.host.with_name(self.host.name + ".partial")

    @property
    def record(self) -> Path:
        return self.host.with_name(self.host.name + ".partial.json")

    def known(self) -> SideManifest:
        """What is known of the copy that is there, less what would judge a fresh one."""
        return replace(side_manifest.read(self.host.parent), revision=None, blobs={})

    def verdict(self) -> engram.Verdict:
        """On the copy that is there; a missing one is refused."""
        if not self.host.is_file() or self.host.is_symlink():
            return engram.Verdict(str(self.host), "", ("is not there",), False)
        return engram.judge(self.host, self.shard, self.share)

    def wanted(self) -> tuple[Range, ...]:
        """Bytes that the copy must have, by the snapshot's header; Unmet when that is cut."""
        why = content.wrong_size(self.shard)
        if why:
            raise Unmet(f"{self.shard} is not whole: {why}; fetch it again")
        header = safetensors.read(self.shard)
        return ranges.merged(needed_bytes(header, self.share, self.known()))

    def make(self, tell: Tell) -> None:
        """Until the copy is proven; Unmet when there is no room or the proof fails."""
        self.host.parent.mkdir(parents=True, exist_ok=True)
        wanted = self.wanted()
        with self.shard.open("rb") as shard, self._open().open("r+b") as here:
            done = self._begin(wanted, shard.fileno(), here.fileno(), tell)
            missing = ranges.without(wanted, ranges.without(done, self.distrusted))
            _check_room(self.host, ranges.total(missing))
            self._copy(missing, done, shard.fileno(), here.fileno(), tell)
            os.fsync(here.fileno())
        verdict = engram.judge(self.partial, self.shard, self.share, self.known())
        if verdict.refused:
            self.record.unlink(missing_ok=True)
            raise Unmet("\n".join(verdict.lines))
        self.partial.chmod(0o644)
        self.partial.rename(self.host)
        self.record.unlink(missing_ok=True)
        _sync_folder(self.host.parent)

    def _identity(self) -> dict[str, object]:
        status = self.shard.stat()
        blob = content.blob_of(self.shard)
        return {"blob": blob, "size": status.st_size, "modified": 0 if blob else status.st_mtime}

    def _open(self) -> Path:
        """The partial file, kept if it is of this shard and was recorded, else made anew."""
        if not (self.partial.is_file() and self._recorded() is not None):
            self.record.unlink(missing_ok=True)
            self.partial.unlink(missing_ok=True)
            self.partial.touch(0o600)
        os.truncate(self.partial, self.shard.stat().st_size)
        return self.partial

    def _recorded(self) -> tuple[Range, ...] | None:
        try:
            found = json.loads(self.record.read_text())
            if found["shard"] == self._identity():
                return tuple((start, end) for start, end in found["done"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _begin(
        self, wanted: tuple[Range, ...], shard: int, here: int, tell: Tell
    ) -> tuple[Range, ...]:
        """Take over what is good in the copy that is there; which ranges are done."""
        recorded = self._recorded()
        if recorded is not None:
            tell(f"{self.host}: goes on, {size_shown(ranges.total(recorded))} are there")
            return recorded
        if not self.verdict().is_of_shard:
            return ()
        with self.host.open("rb") as there:
            kept = list(holes.data(there.fileno(), self.shard.stat().st_size))
            if side_manifest.read(self.host.parent).made_for not in (None, str(self.share)):
                kept = list(ranges.common(kept, wanted))
            block = holes.block(there.fileno())
            sure = _surely_written(kept, wanted, block)
            if not _are_equal(there.fileno(), shard, sure, block):
                tell(f"{self.host}: is of other content and made anew")
                return ()
            tell(f"{self.host}: keeps {size_shown(ranges.total(kept))}")
            if not _clone(there.fileno(), here):
                _check_room(self.host, ranges.total(kept))
                copies.data(there.fileno(), here, kept, lambda text: tell(f"{self.host}: {text}"))
            return sure

    def _copy(
        self, missing: Iterable[Range], done: Iterable[Range], there: int, here: int, tell: Tell
    ) -> None:
        whole, name = ranges.total(missing), str(self.host)
        work = Work(name, there, here, self.rate, whole, list(done), self._note_done, tell)
        for start, end in missing:
            self.checksums[f"{start}:{end}"] = work.copy(start, end)
        work.save()

    def _note_done(self, done: Iterable[Range]) -> None:
        fresh = self.record.with_name(self.record.name + ".new")
        fresh.write_text(json.dumps({"shard": self._identity(), "done": ranges.merged(done)}))
        fresh.rename(self.record)


def _surely_written(
    kept: Iterable[Range], wanted: Iterable[Range], block: int
) -> tuple[Range, ...]:
    """``kept`` without the blocks at the ends of ranges, which may be written in part."""
    inner = [(start + block, end - block) for start, end in kept]
    return ranges.common([piece for piece in inner if piece[0] < piece[1]], wanted)


def _are_equal(there: int, shard: int, where: Iterable[Range], block: int) -> bool:
    """Whether the first and the last block of each range are the same in both files."""
    return all(
        os.pread(there, block, at) == os.pread(shard, block, at)
        for start, end in where
        for at in (start, max(start, end - block))
        if end - start >= block
    )


def _clone(there: int, here: int) -> bool:
    """Share all blocks, where the file system can (btrfs, xfs)."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(here, _FICLONE, there)
        return True
    return False


def _check_room(host: Path, needed: int) -> None:
    room = os.statvfs(host.parent)
    free = room.f_bavail * room.f_frsize
    if needed and free < needed + _RESERVE:
        raise Unmet(
            f"no room for {host}: {size_shown(needed)} are to be written, {size_shown(free)} are "
            f"free, and {size_shown(_RESERVE)} must stay; make room on that disk"
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
