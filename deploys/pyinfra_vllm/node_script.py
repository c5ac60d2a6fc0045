"""Scripts that run on a node or in an image, with the data that they are to work on. Pure."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


def filled(path: Path, slot: str, name: str, document: Any) -> str:
    """The script at ``path`` with ``document`` as the value of ``name``, where ``slot`` stands.

    ``slot`` is the line, with its newline, that gives ``name`` an empty value. RuntimeError
    when the script hasn't it exactly once.
    """
    return _text(path, slot).replace(
        slot, f"import json\n{name} = json.loads({json.dumps(document)!r})\n"
    )


@cache
def _text(path: Path, slot: str) -> str:
    text = path.read_text(encoding="utf-8")
    if text.count(slot) != 1:
        raise RuntimeError(f"{path}: expected one line {slot!r}")
    return text
