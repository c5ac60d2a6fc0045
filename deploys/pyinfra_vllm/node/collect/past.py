"""What the gang's agents have kept: how starts ended, and how long switches took."""

# ruff: noqa: PTH118

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from pyinfra_vllm.node.collect.files import names_in, read_text
from pyinfra_vllm.node.collect.parts import Document

_KEPT = 10
_MOST = 1e15
"""No time and no count is larger, infinity above all."""


def past(root: str, gang: str) -> Document:
    """The last starts that ended, the oldest first, and the last switches that came to serve.

    Nothing where nothing is kept; what can't be understood is left out.
    """
    home = os.path.join(root, gang)
    book = _object(read_text(os.path.join(home, "starts.json")))
    trial = book.get("trial")
    return {
        "starts": _whole(book.get("number")) or 0,
        "broken": bool(book.get("broken")),
        "on_trial": str(trial.get("release") or "") if isinstance(trial, dict) else "",
        "ended": list(_ended(os.path.join(home, "evidence"))),
        "switches": list(_switches(read_text(os.path.join(home, "history.jsonl"))))[-_KEPT:],
    }


def _ended(folder: str) -> Iterator[Document]:
    for name in names_in(folder)[-_KEPT:]:
        known = _object(read_text(os.path.join(folder, name)))
        first = known.get("first")
        if isinstance(first, dict) and isinstance(known.get("start"), int):
            yield {
                "start": known["start"],
                "release": str(known.get("release") or ""),
                "ended": _seconds(known.get("ended")) or 0.0,
                "served": bool(known.get("served")),
                "rank": _whole(first.get("rank")),
                "code": _whole(first.get("exit_code")),
                "text": str(first.get("text") or ""),
            }


def _switches(text: str) -> Iterator[Document]:
    """Those that ended in a completion: seconds of the engine's start, and without service."""
    for line in text.splitlines():
        known = _object(line)
        if known.get("event") == "serving":
            yield {
                "at": _seconds(known.get("at")) or 0.0,
                "release": str(known.get("release") or ""),
                "engine": _seconds(known.get("engine")),
                "without": _seconds(known.get("without")),
            }


def _seconds(value: object) -> float | None:
    """A number that is one; None for what somebody has written there by hand."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < _MOST else None


def _whole(value: object) -> int | None:
    found = _seconds(value)
    return None if found is None else int(found)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
