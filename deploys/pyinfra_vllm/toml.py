"""A TOML file as a table, or one clear message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tomli

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.validation import shown


def read(path: Path) -> dict[str, Any]:
    """The table in ``path``. UserError says file, line and column of a mistake."""
    where = shown(path)
    text = _text(path, where)
    try:
        return tomli.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(_syntax(where, text, str(error))) from None


def _text(path: Path, where: str) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{where}: can't be read: {error.strerror}") from None
    try:
        # A byte order mark is what some editors write in front of UTF-8.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}:{line}: isn't UTF-8; save the file as UTF-8") from None


def _syntax(where: str, text: str, message: str) -> str:
    place = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if place:
        return f"{where}:{place[1]}:{place[2]}: not TOML: {message[: place.start()]}"
    said = message.removesuffix(" (at end of document)")
    lines = text.splitlines() or [""]
    return f"{where}:{len(lines)}:{len(lines[-1]) + 1}: not TOML: {said}"
