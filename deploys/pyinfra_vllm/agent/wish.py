"""What the head is to do: ``wanted.json`` and ``paused``, looked at again and again."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import document, paths
from .errors import Unmet


@dataclass(frozen=True)
class Wish:
    """``release`` "": there is none. ``switch``: counts what operators have asked for."""

    release: str
    switch: int
    paused: str
    """Who paused the gang, when and why; "" when nobody did."""
    missing: str = ""
    """Why there is no release to serve."""


class Wishes:
    """Reads the files when they have changed."""

    def __init__(self, gang: str) -> None:
        self._wanted = paths.here(paths.wanted(gang))
        self._paused = paths.here(paths.paused(gang))
        self._seen: tuple[object, object] | None = None
        self._wish = Wish("", 0, "")

    def look(self) -> Wish:
        """The wish as it is now."""
        seen = (_signature(self._wanted), _signature(self._paused))
        if seen != self._seen:
            self._wish = _read(self._wanted, self._paused)
            self._seen = seen
        return self._wish


def _signature(path: Path) -> object:
    try:
        state = path.stat()
    except OSError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)


def _read(wanted: Path, paused: Path) -> Wish:
    pause = _pause(paused)
    try:
        source = document.read(wanted)
        release = source.text("release")
        if len(release) != 64 or set(release) - set("0123456789abcdef"):
            raise Unmet(f"{wanted}: release: {release!r} is no digest; run the deploy again")
        return Wish(release, source.number("switch"), pause)
    except Unmet as unmet:
        return Wish("", 0, pause, str(unmet))


def _pause(path: Path) -> str:
    """The marker alone counts; what it says of who and why is for people."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"paused ({path}: {os.strerror(error.errno or 0)})"
    try:
        marker = json.loads(text)
        return f"paused by {marker['who']} at {marker['when']}: {marker['why']}"
    except (ValueError, KeyError, TypeError):
        return f"paused: {path} is there"
