"""What a head leaves to the next one when the head moves: its history, and where its book stood.

Pure. The history goes on where the head is; without this it would stay on the old one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyinfra_vllm.agent import switches


def texts(
    gang: str, ours: Sequence[str], theirs: Sequence[str], moved: dict[str, Any]
) -> dict[str, str]:
    """File on the new head -> text: both histories in the order of time, and the move.

    ``ours``: lines that the new head has itself, of a time when it was the head.
    """
    lines = sorted(dict.fromkeys([*ours, *theirs]), key=_at)
    if not lines or not _is_same_move(lines[-1], moved):
        lines.append(json.dumps({"schema": 1, **moved}))
    return dict(zip(switches.files(gang), _packed(lines), strict=False))


def moved(at: float, was: str, carried: bool) -> dict[str, Any]:
    """The line of a move. ``was``: the head until then; ``carried``: its history is in here."""
    told = {"event": "moved", "from": was, "carried": carried}
    return {"at": round(at, 1), "switch": 0, "release": "", **told}


def book(text: str, at: float) -> str | None:
    """The new head's book: starts are counted on, and time without service is. None: no text.

    What the old head had against a release is its own: the new one tries anew.
    """
    try:
        known = json.loads(text)
        number, down = int(known["number"]), known.get("down_since")
        since = at if known.get("serves") else None if down is None else float(down)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    kept = {"number": number, "deaths": [], "collapses": [], "broken": False, "down_since": since}
    return json.dumps({"schema": 1, **kept}, indent=1) + "\n"


def _at(line: str) -> float:
    try:
        return float(json.loads(line)["at"])
    except (ValueError, LookupError, TypeError):
        return 0.0


def _is_same_move(line: str, moved: dict[str, Any]) -> bool:
    """A deploy that was cut says it again."""
    try:
        known = json.loads(line)
        return all(known.get(key) == moved[key] for key in ("event", "from", "carried"))
    except (ValueError, AttributeError):
        return False


def _packed(lines: Sequence[str]) -> list[str]:
    """Texts of files, the newest first, none longer than the head's own."""
    found: list[str] = [""]
    for line in reversed(lines):
        text = f"{line}\n"
        if found[-1] and len((text + found[-1]).encode()) > switches.BYTES:
            found.append("")
        found[-1] = text + found[-1]
    return found
