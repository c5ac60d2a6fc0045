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


def past(root: str, gang: str) -> Document:
    """The last starts that ended, the oldest first, and the last switches that came to serve.

    Nothing where nothing is kept; what can't be understood is left out.
    """
    home = os.path.join(root, gang)
    book = _object(read_text(os.path.join(home, "starts.json")))
    trial = book.get("trial")
    return {
        "starts": int(book.get("number") or 0),
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
                "ended": float(known.get("ended") or 0),
                "served": bool(known.get("served")),
                "rank": first.get("rank"),
                "code": first.get("exit_code"),
                "text": str(first.get("text") or ""),
            }


def _switches(text: str) -> Iterator[Document]:
    """Those that ended in a completion: seconds of the engine's start, and without service."""
    for line in text.splitlines():
        known = _object(line)
        if known.get("event") == "serving":
            yield {
                "at": float(known.get("at") or 0),
                "release": str(known.get("release") or ""),
                "engine": known.get("engine"),
                "without": known.get("without"),
            }


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
