"""How earlier starts ended, kept on the head: when to wait, and when to stop trying. Pure.

``starts.json`` holds a :class:`History`; keys are only ever added.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from . import pace
from .trial import Trial

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
    """``number``: of the last start. ``collapses``: Unix seconds. ``broken``: not serving since.

    ``passed``: the release that answered a completion last. ``trial``: the one that is on, or
    the last that was. ``serves``: a completion was answered and that start goes on.
    ``down_since``: Unix seconds when the last start that served ended, None while one serves
    or when none ever did. ``switch``: of the last wish seen, and ``told``: what the head has
    done about that one and needn't do again.
    """

    number: int = 0
    deaths: tuple[Death, ...] = ()
    collapses: tuple[float, ...] = ()
    broken: bool = False
    passed: str = ""
    trial: Trial | None = None
    serves: bool = False
    down_since: float | None = None
    switch: int = 0
    told: tuple[str, ...] = ()

    def opened(self) -> History:
        """A start was opened."""
        return replace(self, number=self.number + 1)

    def collapsed(self, at: float, death: Death | None) -> History:
        """A start ended that nobody had asked to end."""
        deaths = (*self.deaths, death)[-20:] if death else self.deaths
        collapses = (*self.collapses, at)[-20:]
        return replace(self, deaths=deaths, collapses=collapses, broken=True)

    def serving(self, release: str) -> History:
        """The gang serves."""
        return replace(
            self, deaths=(), broken=False, passed=release, trial=None, serves=True, down_since=None
        )

    def down(self, at: float) -> History:
        """A start that served has ended; nothing when none did."""
        return replace(self, serves=False, down_since=at) if self.serves else self

    def wished(self, switch: int) -> History:
        """A wish was seen: of a new one nothing is told yet, and it waits for no back-off."""
        if switch == self.switch:
            return self
        return replace(self, switch=switch, told=(), collapses=())

    def telling(self, what: str) -> History:
        """Something is done about the present wish."""
        return self if what in self.told else replace(self, told=(*self.told, what))

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


_BROKEN = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What a file raises that is not there, or in which anything may stand where a table was."""


@dataclass
class Book:
    """The history in its file. A disk that is full costs the record, never the gang."""

    path: Path
    history: History = field(default_factory=History)
    trouble: str = ""
    kept: History | None = None
    """What the file has."""

    @classmethod
    def open(cls, path: Path) -> Book:
        """What the file knows; nothing when it is not there or broken."""
        try:
            return cls(path, _parse(json.loads(path.read_text())))
        except _BROKEN:
            return cls(path)

    def keep(self, history: History) -> None:
        """Replace the file by rename."""
        self.history = history
        fresh = self.path.with_name(f".{self.path.name}.new")
        try:
            fresh.write_text(json.dumps({"schema": 1, **asdict(history)}, indent=1) + "\n")
            fresh.rename(self.path)
            self.trouble, self.kept = "", history
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}"


def _parse(known: dict[str, Any]) -> History:
    trial, down_since = known.get("trial"), known.get("down_since")
    return History(
        number=int(known["number"]),
        deaths=tuple(Death(**{**death, "at": float(death["at"])}) for death in known["deaths"]),
        collapses=tuple(float(at) for at in known["collapses"]),
        broken=bool(known["broken"]),
        passed=str(known.get("passed", "")),
        trial=Trial(**{**trial, "deaths": tuple(trial["deaths"])}) if trial else None,
        serves=bool(known.get("serves", False)),
        down_since=None if down_since is None else float(down_since),
        switch=int(known.get("switch", 0)),
        told=tuple(known.get("told", ())),
    )


def clock(at: float) -> str:
    """A time of day for people."""
    return time.strftime("%H:%M:%S", time.localtime(at))
