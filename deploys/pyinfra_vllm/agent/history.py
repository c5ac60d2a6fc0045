"""How earlier starts ended, kept on the head: when to wait, and when to stop trying. Pure."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from . import pace

DEATHS = 5
"""So many starts whose engine died before a first completion, and the head stops trying."""
WINDOW = 7200.0
"""Seconds (wall clock) in which they count."""
_RECENT = pace.seconds(600.0)
_FREE = 2
"""So many collapses in :data:`_RECENT` seconds cost no wait."""
_FIRST_WAIT, _LONGEST_WAIT = pace.seconds(10.0), pace.seconds(300.0)


@dataclass(frozen=True)
class Death:
    """An engine that died before the first completion of its start."""

    at: float
    release: str
    switch: int
    text: str


@dataclass(frozen=True)
class History:
    """``number``: of the last start. ``collapses``: Unix seconds. ``broken``: not serving since."""

    number: int = 0
    deaths: tuple[Death, ...] = ()
    collapses: tuple[float, ...] = ()
    broken: bool = False

    def opened(self) -> History:
        """A start was opened."""
        return replace(self, number=self.number + 1)

    def collapsed(self, at: float, death: Death | None) -> History:
        """A start ended that nobody had asked to end."""
        deaths = (*self.deaths, death)[-20:] if death else self.deaths
        collapses = (*self.collapses, at)[-20:]
        return replace(self, deaths=deaths, collapses=collapses, broken=True)

    def serving(self) -> History:
        """The gang serves."""
        return replace(self, deaths=(), broken=False)

    def gave_up(self, release: str, switch: int, now: float) -> str:
        """Why this release is not tried any more, "" when it is."""
        counted = [
            death
            for death in self.deaths
            if (death.release, death.switch) == (release, switch) and abs(now - death.at) < WINDOW
        ]
        if len(counted) < DEATHS:
            return ""
        return (
            f"gave up: {len(counted)} engines died before a first completion, "
            f"the last: {counted[-1].text}; deploy, or run deploys/resume.py, to try again"
        )

    def next_start(self, now: float) -> float:
        """Unix time before which no start is opened."""
        recent = [at for at in self.collapses if abs(now - at) < _RECENT]
        if len(recent) <= _FREE:
            return 0.0
        return recent[-1] + min(_LONGEST_WAIT, _FIRST_WAIT * float(2 ** (len(recent) - _FREE - 1)))


@dataclass
class Book:
    """The history in its file. A disk that is full costs the record, never the gang."""

    path: Path
    history: History = field(default_factory=History)
    trouble: str = ""

    @classmethod
    def open(cls, path: Path) -> Book:
        """What the file knows; nothing when it is not there or broken."""
        try:
            known = json.loads(path.read_text())
            deaths = tuple(Death(**death) for death in known["deaths"])
            collapses = tuple(float(at) for at in known["collapses"])
            history = History(int(known["number"]), deaths, collapses, bool(known["broken"]))
            return cls(path, history)
        except (OSError, ValueError, KeyError, TypeError):
            return cls(path)

    def keep(self, history: History) -> None:
        """Replace the file by rename."""
        self.history = history
        fresh = self.path.with_name(f".{self.path.name}.new")
        try:
            fresh.write_text(json.dumps({"schema": 1, **asdict(history)}, indent=1) + "\n")
            fresh.rename(self.path)
            self.trouble = ""
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}"


def clock(at: float) -> str:
    """A time of day for people."""
    return time.strftime("%H:%M:%S", time.localtime(at))
