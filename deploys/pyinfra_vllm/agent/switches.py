"""``history.jsonl`` on the head: what was asked for, by whom, and how it ended.

One JSON document a line (schema 1; keys are only ever added), each with ``at`` (Unix
seconds), ``switch``, ``release`` and ``event``:

``asked``
    the head has seen the wish; with ``kind``, ``by``, ``recipe``, ``image`` and ``previous`` of
    it, and ``why`` where it is one to go back
``serving``
    the first completion since then; ``start``: its number, ``engine``: seconds from the
    engine's start to it, ``without``: seconds since the last completion's start had ended,
    null when nothing had served before
``rolled back``
    the head went back ``to`` another release, and ``why``
``gave up``
    the head stopped trying, and ``why``
``moved``
    written by the deploy that made this node the head: ``from`` which one, and whether what
    that one knew was ``carried`` here; ``switch`` 0 and no ``release``

A wish that another one followed was replaced.
"""

from __future__ import annotations

import json
import os
from typing import IO, Any

from . import paths

BYTES = 50_000
"""A file that is longer is put aside: a node's state has the text of files up to 64 KiB."""
OLDER = 4
"""So many files that were put aside are kept."""


def record(gang: str, event: str, at: float, switch: int, release: str, **about: Any) -> str:
    """Append one line that is on the disk afterwards. Returns what went wrong, "" if nothing."""
    known = {"schema": 1, "at": round(at, 1), "switch": switch, "release": release, "event": event}
    path = paths.here(paths.history(gang))
    try:
        _turn(gang)
        with path.open("ab+") as stream:
            line = json.dumps({**known, **about}) + "\n"
            stream.write(_mended(stream) + line.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _mended(stream: IO[bytes]) -> bytes:
    """What ends a line that a power cut has torn."""
    if not stream.seek(0, os.SEEK_END):
        return b""
    stream.seek(-1, os.SEEK_END)
    return b"" if stream.read(1) == b"\n" else b"\n"


def _turn(gang: str) -> None:
    """Put a full file aside, and forget the oldest."""
    names = [paths.here(path) for path in files(gang)]
    if not names[0].exists() or names[0].stat().st_size < BYTES:
        return
    for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
        if newer.exists():
            newer.rename(older)


def files(gang: str) -> tuple[str, ...]:
    """The newest file and those that were put aside, the oldest last."""
    newest = paths.history(gang)
    return (newest, *(f"{newest}.{number}" for number in range(1, OLDER + 1)))
