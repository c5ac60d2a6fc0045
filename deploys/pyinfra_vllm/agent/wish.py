"""What the head is to do: ``wanted.json`` and ``paused``, looked at again and again.

``wanted.json`` (schema 1; keys are only ever added):

``release``, ``previous``
    digests; ``previous`` is what the head goes back to, null for a first deploy
``earlier``
    digests that served before ``previous``, the newest first
``switch``
    counts what was asked for; a resume counts too
``trial``
    ``{"seconds": …}``: allowed until the first completion; without it nothing is on trial
``lease``
    seconds that the release is only lent for since the file ``lease`` was last touched; null
``kind``, ``by``, ``recipe``, ``image``
    for the history alone: "deploy", "rollback", "trial" or "back" (by the head itself);
    ``{"who", "revision", "dirty"}``; the recipe's name; ``{"tag", "build"}``
``back``
    written by the head that went back: ``{"from", "switch", "why", "at"}``
``deadline``
    always null
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import document, paths, pause
from .errors import Unmet
from .trial import Terms


@dataclass(frozen=True)
class Wish:
    """``release`` "": there is none. ``switch``: counts what operators have asked for."""

    release: str
    switch: int
    paused: str
    """Who paused the gang, when and why; "" when nobody did."""
    missing: str = ""
    """Why there is no release to serve."""
    terms: Terms | None = None
    """What the release is allowed, None where nothing is on trial."""
    whole: dict[str, Any] = field(default_factory=dict, compare=False)
    """The document as it was read."""

    @property
    def note(self) -> str:
        """What people must know of this wish: that the head went back, and why."""
        back = self.whole.get("back")
        if not isinstance(back, dict):
            return ""
        return f"rolled back from {str(back.get('from'))[:12]}: {back.get('why')}"


class Wishes:
    """Reads the files when they have changed."""

    def __init__(self, gang: str) -> None:
        self._gang = gang
        self._wanted = paths.here(paths.wanted(gang))
        self._paused = paths.here(paths.paused(gang))
        self._lease = paths.here(paths.lease(gang))
        self._seen: tuple[object, object] | None = None
        self._wish = Wish("", 0, "")

    def look(self) -> Wish:
        """The wish as it is now."""
        seen = (_signature(self._wanted), _signature(self._paused))
        if seen != self._seen or (self._wish.paused and pause.has_lease(self._paused)):
            self._wish = _read(self._wanted, self._paused)
            self._seen = seen
        return self._wish

    def unheard(self) -> float:
        """Seconds since somebody renewed the lease; endless when there is none."""
        try:
            return max(0.0, time.time() - self._lease.stat().st_mtime)
        except OSError:
            return float("inf")

    def has_files_of(self, release: str) -> bool:
        """Whether the release lies on this node."""
        return paths.here(f"{paths.releases(self._gang)}/{release}/{paths.LAUNCH}").is_file()

    def replace(self, document: dict[str, Any]) -> None:
        """Another wish, by rename. OSError when it can't be written."""
        fresh = self._wanted.with_name(f".{self._wanted.name}.back")
        with fresh.open("w") as stream:
            stream.write(json.dumps(document, indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.chmod(0o644)
        fresh.rename(self._wanted)


def _signature(path: Path) -> object:
    try:
        state = path.stat()
    except OSError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)


def _read(wanted: Path, paused: Path) -> Wish:
    held = pause.text(paused)
    try:
        source = document.read(wanted)
        release = source.text("release")
        if not _is_digest(release):
            raise Unmet(f"{wanted}: release: {release!r} is no digest; run the deploy again")
        switch = source.number("switch")
        whole = source.value
        assert isinstance(whole, dict)
        return Wish(release, switch, held, "", _terms(whole, release, switch), whole)
    except Unmet as unmet:
        return Wish("", 0, held, str(unmet))


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and len(text) == 64 and not set(text) - set("0123456789abcdef")


def _terms(whole: dict[str, Any], release: str, switch: int) -> Terms | None:
    """None where the document has none, or none that can be read: then nothing is on trial."""
    previous = whole.get("previous")
    try:
        seconds = float((whole.get("trial") or {}).get("seconds", 0))
        lease = float(whole.get("lease") or 0)
    except (AttributeError, ValueError, TypeError):
        return None
    known = str(previous) if _is_digest(previous) and previous != release else ""
    return Terms(release, switch, known, seconds, lease if known else 0.0)
