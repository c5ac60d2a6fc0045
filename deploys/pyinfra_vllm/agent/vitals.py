"""Does the engine live? Judged from samples. Pure.

A long prefill moves no token counter for minutes, and `/health` stays 200 on a dead
engine; so nothing but long silence of all signs *and* a completion that fails counts
as death.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import pace
from .events import Sample

INTERVAL = pace.seconds(60.0)
"""Seconds between two looks."""
PATIENCE = pace.seconds(900.0)
"""Silence in seconds that is never held against an engine."""
_EXTENSIONS = 2
_UNKNOWN_IDLE_WATTS = 28.0
"""A GB10 whose engine hangs was seen at 16 to 27 W, a healthy one at 45 W."""
_ABOVE = 1.25


@dataclass(frozen=True)
class Vitals:
    """``alive_at``: steady seconds of the last sign of life. ``idle_watts``: lowest seen idle."""

    alive_at: float
    signs: str | None = None
    idle_watts: float | None = None
    extensions: int = 0
    press: bool = False
    dead: str = ""


def judge(known: Vitals, sample: Sample, now: float, patience: float) -> Vitals:
    """What is known after one more sample; ``patience`` in seconds is the engine's own limit."""
    moved = sample.signs is not None and sample.signs != known.signs
    if sample.signs is not None:
        known = replace(known, signs=sample.signs)
    if sample.answered or moved or sample.excused:
        return _lives(known, sample, now)
    limit = max(PATIENCE, patience) * (1 + known.extensions)
    silent = now - known.alive_at
    if silent < limit:
        return replace(known, press=False)
    if sample.answered is None:
        return replace(known, press=True)
    if known.extensions < _EXTENSIONS and _works(known, sample.watts):
        return replace(known, extensions=known.extensions + 1, press=False)
    return replace(known, dead=f"no sign of life for {silent:.0f} s: {sample.detail}")


def _lives(known: Vitals, sample: Sample, now: float) -> Vitals:
    watts = known.idle_watts
    if sample.watts is not None and not sample.busy:
        watts = sample.watts if watts is None else min(watts, sample.watts)
    return replace(known, alive_at=now, idle_watts=watts, extensions=0, press=False)


def _works(known: Vitals, watts: float | None) -> bool:
    """Whether the GPU takes more power than when nothing is asked of it."""
    if watts is None:
        return False
    idle = known.idle_watts if known.idle_watts is not None else _UNKNOWN_IDLE_WATTS
    return watts > idle * _ABOVE
