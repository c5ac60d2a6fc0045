"""What ranks say of themselves, and the values that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HEAD = 0

ABSENT = 1
"""What is lacking is a part of the release itself, which waiting doesn't bring."""

Stage = Literal["clearing", "assembling", "running", "ending"]
Word = Literal["hold", "want", "open", "serve", "here", "lack", "have", "run", "end"]
"""Of the head: hold, want, open, serve. Of a worker: here, lack, have, run. Of both: end."""


@dataclass(frozen=True)
class Start:
    """One joint start. The nonce tells apart two starts that have the same number."""

    number: int
    nonce: str


@dataclass(frozen=True)
class Said:
    """What one end says of itself; ``text`` is for people only.

    ``code``: with *end* the exit code of an engine; with *lack* :data:`ABSENT`, or 0.
    ``first``: with *end* the rank that went first, where it is known.
    """

    word: Word
    release: str = ""
    start: Start | None = None
    code: int = 0
    text: str = ""
    first: int | None = None


@dataclass(frozen=True)
class End:
    """Why a life ends. ``code``: the exit code where an engine's own exit is the reason."""

    rank: int
    code: int | None
    text: str
