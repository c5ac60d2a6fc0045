"""``engram``: look at the local copies of a plan, make those that lack something, write down how.

The plan: ``{"schema": 1, "repo", "revision", "engram": {"rank", "parallel_size", "first_rows"},
"rate": bytes a second or 0, "verify": false, "files": [{"host", "shard"}]}``.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import content, ranges, safetensors, side_manifest
from .copies import Tell
from .document import Document, check_schema
from .errors import Unmet
from .fill import Fill
from .ranges import Range, size_shown
from .shares import layer_of, needed_rows, share_of

_PIECE = 8 << 20
_TELL_SECONDS = 5.0
_NOTE = "made by pyinfra-vllm: rows of one rank, at their offsets, the rest is a hole"


@dataclass(frozen=True)
class Plan:
    """What is to be made from which snapshot."""

    repo: str
    revision: str
    verify: bool
    fills: tuple[Fill, ...]


def parse(document: Document) -> Plan:
    """The plan that the document describes; Unmet names the first key that is wrong."""
    check_schema(document)
    share = replace(share_of(document.table("engram")), every_split=True)
    rate = document.number("rate")
    fills = tuple(
        Fill(Path(item.path_of("host")), Path(item.path_of("shard")), share, rate)
        for item in document.tables("files")
    )
    return Plan(document.text("repo"), document.text("revision"), document.flag("verify"), fills)


def look(plan: Mapping[str, Any]) -> dict[str, Any]:
    """For each file of the plan, why it must be made or topped up; nothing is changed."""
    found = {}
    for fill in parse(Document("plan", dict(plan))).fills:
        try:
            fill.wanted()
            verdict = fill.verdict()
            found[str(fill.host)] = {"lacking": list(verdict.refused), "good": verdict.good}
        except (Unmet, OSError, safetensors.MalformedError) as error:
            found[str(fill.host)] = {"problem": str(error)}
    return found


def run(plan: Plan, tell: Tell) -> None:
    """Make every copy that lacks something; Unmet names what is wrong."""
    for fill in plan.fills:
        lacking = fill.verdict().refused
        if not lacking and plan.verify:
            fill.distrusted = _differences(fill, tell)
        if not lacking and not fill.distrusted:
            tell(f"{fill.host}: {fill.verdict().good}")
            if plan.verify:
                _note(plan, fill)
            continue
        for line in lacking:
            tell(f"{fill.host}: {line}")
        fill.make(tell)
        _note(plan, fill)
        tell(f"{fill.host}: {fill.verdict().good}")


def _differences(fill: Fill, tell: Tell) -> tuple[Range, ...]:
    """Read all that must be in the copy and compare it with the snapshot."""
    wrong: list[Range] = []
    whole, read, said = ranges.total(fill.wanted()), 0, time.monotonic()
    with fill.host.open("rb") as copy, fill.shard.open("rb") as shard:
        for first, end in fill.wanted():
            digest = hashlib.sha256()
            for start in range(first, end, _PIECE):
                count = min(_PIECE, end - start)
                here, there = (os.pread(f.fileno(), count, start) for f in (copy, shard))
                for file in (copy, shard):
                    os.posix_fadvise(file.fileno(), start, count, os.POSIX_FADV_DONTNEED)
                digest.update(there)
                wrong += [(start, start + count)] if here != there else []
                read += count
                if time.monotonic() - said > _TELL_SECONDS:
                    said = time.monotonic()
                    tell(f"{fill.host}: compared {size_shown(read)} of {size_shown(whole)}")
            fill.checksums[f"{first}:{end}"] = digest.hexdigest()
    if wrong:
        tell(f"{fill.host}: bytes {ranges.shown(wrong)} differ from {fill.shard}")
    else:
        tell(f"{fill.host}: all {size_shown(whole)} are as in {fill.shard}")
    return ranges.merged(wrong)


def _note(plan: Plan, fill: Fill) -> None:
    """Write down in the side manifest what the copy was made from and for."""
    folder = fill.host.parent
    found = side_manifest.document(folder)
    header = safetensors.read(fill.shard)
    known = fill.known()
    layers = dict(found.get("layers") or {}) if known.made_for in (None, str(fill.share)) else {}
    for table in header.tensors:
        layer = layer_of(table)
        if layer is not None:
            rows = [list(pair) for pair in needed_rows(table, fill.share, known)]
            layers[layer] = rows[0] if len(rows) == 1 else rows
    files = dict(found["files"]) if isinstance(found.get("files"), dict) else {}
    files[fill.host.name] = {
        "sha256": content.blob_of(fill.shard),
        "ranges": [list(pair) for pair in fill.wanted()],
        "checksums": fill.checksums,
    }
    found |= {
        "source": str(fill.shard.parent),
        "layers": layers,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "note": _NOTE,
        "repo": plan.repo,
        "revision": plan.revision,
        "rank": fill.share.rank,
        "parallel_size": fill.share.size,
        "files": files,
    }
    fresh = folder / f".{side_manifest.NAME}.new"
    fresh.write_text(json.dumps(found, indent=1) + "\n")
    fresh.rename(folder / side_manifest.NAME)
