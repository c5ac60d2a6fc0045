"""What a rank reads of a shard: ordinary tensors whole, of Engram tables its own rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import ranges
from .document import Document
from .errors import Unmet
from .ranges import Range
from .safetensors import Header, Tensor
from .side_manifest import SideManifest

_TABLE = re.compile(r"(?:^|\.)layers\.(\d+)\.engram\.embed\.(?:weight|scale)$")


@dataclass(frozen=True)
class Share:
    """A rank among those that share the tables.

    ``first_rows``: first row of every rank by layer, where the recipe has a split of its
    own; without it all ranks have equally many rows. ``every_split``: the rows of all splits
    that are known, so that a copy serves any engine.
    """

    rank: int
    size: int
    first_rows: Mapping[str, Sequence[int]] = field(default_factory=dict)
    every_split: bool = False

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.size}"

    def rows(self, layer: str, total: int) -> Range:
        """What this rank reads of a table of ``total`` rows."""
        if layer in self.first_rows:
            return ranges.rows_from(self.first_rows[layer], total, self.rank)
        return ranges.even_rows(total, self.size, self.rank)


def share_of(manifest: Document) -> Share:
    """The share that ``engram`` of a ``model.manifest`` describes; Unmet when it is wrong."""
    rank, size = manifest.number("rank"), manifest.number("parallel_size")
    if not 0 <= rank < size:
        raise Unmet(f"{manifest.file}: {manifest.path}: rank {rank} is not below {size}")
    first_rows = {}
    if manifest.has("first_rows"):
        table = manifest.table("first_rows").value
        assert isinstance(table, dict)
        first_rows = {layer: tuple(rows) for layer, rows in table.items()}
    for layer, rows in first_rows.items():
        if len(rows) != size:
            raise Unmet(
                f"{manifest.file}: {manifest.path}.first_rows.{layer}: has {len(rows)} rows, "
                f"expected the first row of each of {size} ranks"
            )
    return Share(rank, size, first_rows)


def layer_of(tensor: Tensor) -> str | None:
    """The layer whose Engram table the tensor is; None for an ordinary tensor."""
    match = _TABLE.search(tensor.name)
    if match is None or not tensor.rows or (tensor.end - tensor.start) % tensor.rows:
        return None
    return match[1]


def bytes_of(table: Tensor, rows: Range) -> Range:
    """Where rows of a table lie in the file."""
    each = (table.end - table.start) // table.rows
    return table.start + rows[0] * each, table.start + rows[1] * each


def rows_at(table: Tensor, where: Iterable[Range]) -> tuple[Range, ...]:
    """Rows of a table that have a byte in ``where``, ranges of bytes inside it."""
    each = (table.end - table.start) // table.rows
    return ranges.merged(
        ((start - table.start) // each, -((table.start - end) // each)) for start, end in where
    )


def needed_rows(table: Tensor, share: Share, known: SideManifest) -> tuple[Range, ...]:
    """Rows that must be in a copy.

    What the recipe's split gives the rank. Without one, the even split and what the side
    manifest claims for this rank: it tells that the copy was made with another split in mind.
    """
    layer = layer_of(table) or ""
    wanted = [share.rows(layer, table.rows)]
    if share.every_split:
        wanted.append(ranges.even_rows(table.rows, share.size, share.rank))
        by_heads = ranges.head_rows(table.rows, share.size, share.rank)
        wanted += [by_heads] if by_heads else []
    if (share.every_split or layer not in share.first_rows) and known.made_for in (
        None,
        str(share),
    ):
        claimed = known.rows.get(layer, ())
        wanted += [(max(0, start), min(end, table.rows)) for start, end in claimed]
    return ranges.merged(wanted)


def needed_bytes(header: Header, share: Share, known: SideManifest) -> tuple[Range, ...]:
    """Everything that must be in a copy: header, ordinary tensors, rows of the tables.

    In the order of the file, each tensor with ranges of its own.
    """
    found = [(0, len(header.raw))]
    for tensor in header.tensors:
        if layer_of(tensor) is None:
            found.append((tensor.start, tensor.end))
        else:
            found += [bytes_of(tensor, rows) for rows in needed_rows(tensor, share, known)]
    return tuple(found)
