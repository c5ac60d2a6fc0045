"""Whether a local file that replaces a shard holds what this rank reads from it.

The engine reads rows of the Engram tables from the file on disk, and a hole reads as zeros:
wrong text and no error. So before a start every local shard is proven, by its header and
its holes: nothing of it is read but the first and the last block of what is needed, because a
block is there or not as a whole and can't tell whether its last row was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import holes, ranges, safetensors, side_manifest
from .content import blob_of
from .ranges import Range, size_shown
from .safetensors import Header, Tensor
from .shares import Share, bytes_of, layer_of, needed_bytes, needed_rows, rows_at
from .side_manifest import SideManifest

REMEDY = "deploys/engram.py makes or tops it up"


@dataclass(frozen=True)
class Verdict:
    """``refused``: why not, one sentence each; ``good``: what was seen, when nothing is wrong.

    ``is_of_shard``: whether it is a copy of the shard at all, if only of a part.
    """

    host: str
    good: str
    refused: tuple[str, ...] = ()
    is_of_shard: bool = True

    @property
    def lines(self) -> tuple[str, ...]:
        """For people."""
        return tuple(f"{self.host}: {line}" for line in self.refused or (self.good,))


def judge(
    copy: Path, shard: Path | None, share: Share, known: SideManifest | None = None
) -> Verdict:
    """The verdict on ``copy``, which stands for ``shard`` of the snapshot.

    ``shard`` None: the snapshot has no such file, so that only the copy itself can be looked
    at. ``known``: what lies beside the copy, unless given. OSError when one of them can't
    be opened.
    """
    known = known or side_manifest.read(copy.parent)
    with copy.open("rb") as file:
        return _Case(copy, shard, share, known, file.fileno()).verdict()


@dataclass(frozen=True)
class _Case:
    copy: Path
    shard: Path | None
    share: Share
    known: SideManifest
    opened: int

    def verdict(self) -> Verdict:
        try:
            header = safetensors.read(self.shard or self.copy)
        except safetensors.MalformedError as error:
            return self._refused(f"{self.shard or self.copy} is no safetensors file: {error}")
        wrong = self._wrong_frame(header)
        if wrong:
            return self._refused(wrong)
        if not holes.are_told(self.opened):
            return self._refused(
                "its file system doesn't tell holes, so nobody can know what is in it; "
                "put it on a local ext4, xfs or btrfs"
            )
        stale = list(self._stale())
        lacking = [*stale, *self._lacking(header)] or list(self._other_edges(header))
        return Verdict(str(self.copy), self._good(header), tuple(lacking), not stale)

    def _refused(self, why: str) -> Verdict:
        return Verdict(str(self.copy), "", (why,), False)

    def _wrong_frame(self, header: Header) -> str | None:
        size = os.fstat(self.opened).st_size
        if self.shard is not None and self.shard.stat().st_size != header.size:
            return (
                f"{self.shard} has {self.shard.stat().st_size} bytes, its own header says "
                f"{header.size}: the download did not end"
            )
        if size != header.size:
            return (
                f"it has {size} bytes, the shard that it replaces {header.size}: it is no copy of "
                f"it, or one that did not end; {REMEDY}"
            )
        if os.pread(self.opened, len(header.raw), 0) != header.raw:
            return f"its header is not that of {self.shard}: made from another model; {REMEDY}"
        return None

    def _stale(self) -> Iterator[str]:
        recorded, now = self._recorded_blob(), blob_of(self.shard)
        if recorded and now and recorded != now:
            yield (
                f"stale: it was copied from blob {recorded[:12]}, the snapshot has {now[:12]} now; "
                f"{REMEDY}"
            )

    def _recorded_blob(self) -> str | None:
        """The blob that the copy was made from, as the side manifest or its revision tells."""
        if self.copy.name in self.known.blobs:
            return self.known.blobs[self.copy.name]
        if self.shard is None or self.known.revision is None:
            return None
        parts = self.shard.parts
        if "snapshots" not in parts:
            return None
        home = parts[: parts.index("snapshots") + 1]
        inside = parts[parts.index("snapshots") + 2 :]
        return blob_of(Path(*home, self.known.revision, *inside))

    def _lacking(self, header: Header) -> Iterator[str]:
        for tensor in header.tensors:
            if layer_of(tensor) is None:
                missing = self._holes(tensor.start, tensor.end)
                if missing:
                    yield (
                        f"{tensor.name} is not in it ({size_shown(ranges.total(missing))} of "
                        f"{size_shown(tensor.end - tensor.start)} are a hole) and would load as "
                        f"zeros; {REMEDY}"
                    )
            else:
                yield from self._lacking_rows(tensor)

    def _lacking_rows(self, table: Tensor) -> Iterator[str]:
        needed = needed_rows(table, self.share, self.known)
        missing = [hole for rows in needed for hole in self._holes(*bytes_of(table, rows))]
        if not missing:
            return
        rows = rows_at(table, missing)
        whose = self._whose(table)
        yield (
            f"{ranges.total(rows)} of the {ranges.total(needed)} rows that {self.share} reads from "
            f"{table.name} are a hole ({ranges.shown(rows)}) and would read as zeros"
            f"{whose}; {REMEDY}"
        )

    def _whose(self, table: Tensor) -> str:
        """Words about the rank that the copy was made for, if it was made for another."""
        if self.known.made_for and self.known.made_for != str(self.share):
            return f"; {side_manifest.NAME} says that it is the copy of {self.known.made_for}"
        for rank in range(self.share.size):
            rows = ranges.even_rows(table.rows, self.share.size, rank)
            middle = (rows[0] + (rows[1] - rows[0]) // 4, rows[1] - (rows[1] - rows[0]) // 4)
            if rank != self.share.rank and not self._holes(*bytes_of(table, middle)):
                return f"; it has the rows of rank {rank}"
        return ""

    def _holes(self, start: int, end: int) -> list[Range]:
        return list(holes.holes(self.opened, start, end))

    def _other_edges(self, header: Header) -> Iterator[str]:
        """Where a needed range begins or ends, the copy has the bytes of the snapshot."""
        if self.shard is None:
            return
        needed = needed_bytes(header, self.share, self.known)
        with self.shard.open("rb") as file:
            found = holes.differing_edge(self.opened, file.fileno(), needed)
        if found is not None:
            tensor = next(t for t in header.tensors if found[0] < t.end)
            yield (
                f"bytes {found[0]}:{found[1]} ({tensor.name}) differ from {self.shard}: "
                f"stale, or written in part; {REMEDY}"
            )

    def _good(self, header: Header) -> str:
        tables = [tensor for tensor in header.tensors if layer_of(tensor) is not None]
        others = len(header.tensors) - len(tables)
        rows = {
            layer_of(table): ranges.shown(needed_rows(table, self.share, self.known))
            for table in tables
        }
        parts = [f"rows {shown} of layer {layer}" for layer, shown in rows.items()]
        parts.append(f"{others} ordinary tensor{'s' * (others != 1)}")
        status = os.fstat(self.opened)
        on_disk = size_shown(min(status.st_blocks * 512, status.st_size))
        return (
            f"has {' and '.join(parts)} for {self.share}; {on_disk} of "
            f"{size_shown(status.st_size)} on disk; {self._origin()}"
        )

    def _origin(self) -> str:
        now = blob_of(self.shard)
        if self.shard is None:
            return "the snapshot has no such shard to compare with"
        if now is None or self._recorded_blob() is None:
            return "nobody wrote down which blob it was copied from"
        return f"copied from blob {now[:12]}, which the snapshot has"
