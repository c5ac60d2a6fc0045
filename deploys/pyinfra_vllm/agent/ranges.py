"""Sets of numbers as half-open ranges, and which rows of a table belong to a rank. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""From the first to before the second."""

_FIRST_ROWS_BY_HEADS = {
    (384006168, 4): (0, 96000564, 192001740, 288003654),
    (384016682, 4): (0, 96003054, 192007016, 288011564),
}
"""(rows, parallel size) -> first row of each rank, in the older split of DeepSeek-V4.1-Flash's
tables by whole hash heads. The sizes of the heads are in no header, so they are listed."""


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same numbers as few sorted ranges; those that touch become one, empty ones go."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def without(ranges: Iterable[Range], taken: Iterable[Range]) -> tuple[Range, ...]:
    """What of ``ranges`` is not in ``taken``."""
    left = list(merged(ranges))
    for low, high in merged(taken):
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, low)), (max(start, high), end))
            if piece[0] < piece[1]
        ]
    return tuple(left)


def common(ranges: Iterable[Range], others: Iterable[Range]) -> tuple[Range, ...]:
    """What is in both."""
    ranges = merged(ranges)
    return without(ranges, without(ranges, others))


def total(ranges: Iterable[Range]) -> int:
    """How many numbers."""
    return sum(end - start for start, end in merged(ranges))


def even_rows(rows: int, size: int, rank: int) -> Range:
    """Rows of a rank where all ranks have equally many, as B12X reads them: rounded up."""
    each = -(-rows // size)
    return min(rank * each, rows), min((rank + 1) * each, rows)


def rows_from(first_rows: Sequence[int], rows: int, rank: int) -> Range:
    """Rows of a rank where ``first_rows`` has the first row of every rank."""
    bounds = (*first_rows, rows)
    return bounds[rank], bounds[rank + 1]


def head_rows(rows: int, size: int, rank: int) -> Range | None:
    """Rows of a rank in the older split by whole hash heads; None for an unknown table."""
    first = _FIRST_ROWS_BY_HEADS.get((rows, size))
    return rows_from(first, rows, rank) if first else None


def shown(ranges: Iterable[Range]) -> str:
    """``0:96001542``; of many the first three."""
    ranges = tuple(ranges)
    text = ", ".join(f"{start}:{end}" for start, end in ranges[:3])
    return text + (f" and {len(ranges) - 3} more" if len(ranges) > 3 else "")


def size_shown(size: float) -> str:
    """``101.5 GB``."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
