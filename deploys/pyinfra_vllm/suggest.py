"""The nearest known word to one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CUTOFF = 0.6
"""difflib's ratio below which two words don't look alike."""


def nearest(
    word: str, known: Iterable[str], most: int = 1, cutoff: float = _CUTOFF
) -> tuple[str, ...]:
    """At most ``most`` words of ``known`` that look like ``word``, the nearest first."""
    spelled = {_plain(candidate): candidate for candidate in sorted(known, reverse=True)}
    matches = difflib.get_close_matches(_plain(word), spelled, n=most, cutoff=cutoff)
    return tuple(spelled[match] for match in matches)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The second half of a message about an unknown word: the nearest one, or all of them."""
    words = sorted(known)
    near = nearest(word, words)
    if near:
        return f"did you mean {near[0]}?"
    return f"known here: {', '.join(words)}" if words else "nothing is known here"


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")
