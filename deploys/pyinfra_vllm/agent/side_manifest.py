"""``engram-local.json`` beside the copies: what their maker wrote down about them.

Other tools write ``{"source", "layers": {"1": [start, end]}, "created", "note"}``; ours
adds rank, parallel size and, for each file, the name of the blob that it was copied from.
It is never proof of what is in a copy, only of what it was made for and made from.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .ranges import Range

NAME = "engram-local.json"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class SideManifest:
    """What is known; whatever is missing or not understood is left out.

    ``rows``: rows by layer; ``blobs``: name of the source's blob by file name.
    """

    rows: dict[str, tuple[Range, ...]] = field(default_factory=dict)
    rank: int | None = None
    size: int | None = None
    revision: str | None = None
    blobs: dict[str, str] = field(default_factory=dict)

    @property
    def made_for(self) -> str | None:
        """For whom the copies were made, in words."""
        if self.rank is None or self.size is None:
            return None
        return f"rank {self.rank} of {self.size}"


def read(folder: Path) -> SideManifest:
    """The side manifest of a folder of copies; an empty one when there is none to understand."""
    return parse(document(folder))


def document(folder: Path) -> dict[str, Any]:
    """Its JSON document, empty when there is none."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def parse(found: dict[str, Any]) -> SideManifest:
    """What is understood of a document."""
    layers, files = found.get("layers"), found.get("files")
    rows = {str(k): _ranges(v) for k, v in layers.items()} if isinstance(layers, dict) else {}
    return SideManifest(
        rows={layer: ranges for layer, ranges in rows.items() if ranges},
        rank=_number(found.get("rank")),
        size=_number(found.get("parallel_size", found.get("tp_size"))),
        revision=_revision(found),
        blobs=_blobs(files) if isinstance(files, dict) else {},
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _ranges(value: object) -> tuple[Range, ...]:
    """``[start, end]`` or a list of such."""
    pairs = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    found = []
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_row, pair))):
            return ()
        found.append((pair[0], pair[1]))
    return tuple(found)


def _is_row(value: object) -> bool:
    return _number(value) is not None


def _revision(found: dict[str, Any]) -> str | None:
    """The commit that the document names, by itself or in the path of its source."""
    for key in ("revision", "source"):
        match = _REVISION.search(str(found.get(key, "")))
        if match:
            return match.group()
    return None


def _blobs(files: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, entry in files.items():
        blob = entry.get("sha256") if isinstance(entry, dict) else entry
        if isinstance(blob, str) and _SHA256.fullmatch(blob):
            found[name] = blob
    return found
