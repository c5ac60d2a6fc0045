"""``history.jsonl`` of a head, told as one row for each thing that was asked for. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from pyinfra_vllm.agent import switches
from pyinfra_vllm.node.state import NodeState

_COLUMNS = ("when", "release", "recipe", "image", "kind", "by", "how it ended", "without service")

_WIDEST = 60
"""Characters of how it ended; the document has all."""


@dataclass
class Row:
    """``at``: Unix seconds. ``without``, ``engine``: seconds, None where nobody knows.

    ``ended``: "serving", "served" (and was replaced), "rolled back", "gave up", "replaced"
    before it served, "moved" (the head, and ``why`` says from where), or "" while it is open.
    """

    at: float
    switch: int
    release: str
    kind: str = ""
    recipe: str = ""
    image: dict[str, Any] = field(default_factory=dict)
    by: dict[str, Any] = field(default_factory=dict)
    ended: str = ""
    why: str = ""
    without: float | None = None
    engine: float | None = None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def rows(head: NodeState, gang: str) -> list[Row]:
    """The oldest first. Lines that can't be understood are left out."""
    texts = [head.file(path) for path in reversed(switches.files(gang))]
    lines = [line for found in texts if found for line in (found.text or "").splitlines()]
    return told(_events(lines))


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            known = json.loads(line)
        except ValueError:
            continue
        if isinstance(known, dict) and {"at", "switch", "release", "event"} <= known.keys():
            yield known


def told(events: Iterable[dict[str, Any]]) -> list[Row]:
    """The events of each wish in one row; recipes of earlier rows are remembered."""
    found: list[Row] = []
    recipes: dict[str, tuple[str, dict[str, Any]]] = {}
    for event in events:
        if event["event"] in ("asked", "moved") or not found or found[-1].switch != event["switch"]:
            if found:
                _replaced(found[-1])
            found.append(_asked(event, recipes))
        _add(found[-1], event)
    return found


def _asked(event: dict[str, Any], recipes: dict[str, tuple[str, dict[str, Any]]]) -> Row:
    release = str(event["release"])
    recipe, image = recipes.get(release, ("", {}))
    recipe, image = event.get("recipe") or recipe, event.get("image") or image
    recipes[release] = recipe, image
    by, why = event.get("by") or {}, str(event.get("why") or "")
    kind = str(event.get("kind") or "")
    return Row(float(event["at"]), int(event["switch"]), release, kind, recipe, image, by, why=why)


def _add(row: Row, event: dict[str, Any]) -> None:
    if event["event"] == "serving":
        row.ended = "serving"
        row.without, row.engine = event.get("without"), event.get("engine")
    elif event["event"] == "moved":
        row.kind, row.ended = "move", "moved"
        row.why = f"the head was {event.get('from')}"
        if not event.get("carried"):
            row.why += ", which was not reached: what it had served is not known here"
    elif event["event"] in ("rolled back", "gave up"):
        row.ended, row.why = str(event["event"]), str(event.get("why") or "")


def _replaced(row: Row) -> None:
    row.ended = {"serving": "served", "": "replaced"}.get(row.ended, row.ended)


def table(found: list[Row]) -> list[str]:
    """Lines for people, the newest last."""
    if not found:
        return ["nothing was asked for yet, or only by an older version"]
    cells = [_COLUMNS, *(_cells(row) for row in found)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _cells(row: Row) -> tuple[str, ...]:
    says_why = row.ended in ("rolled back", "gave up", "moved")
    ended = _short(f"{row.ended}: {row.why}") if says_why else row.ended
    without = "" if row.without is None else f"{row.without:.0f} s"
    if row.without is not None and row.engine is not None:
        without += f" (engine {row.engine:.0f} s)"
    return (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.at)),
        row.release[:12],
        row.recipe,
        _image(row.image),
        row.kind,
        _who(row.by),
        ended or "open",
        without,
    )


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1].rstrip()}…"


def _image(image: dict[str, Any]) -> str:
    build = str(image.get("build") or "")[:12]
    return str(image.get("tag") or "") + (f" ({build})" if build else "")


def _who(by: dict[str, Any]) -> str:
    revision = str(by.get("revision") or "")[:10]
    dirty = "+changes" if by.get("dirty") else ""
    return " ".join(filter(None, (str(by.get("who") or ""), revision + dirty)))
