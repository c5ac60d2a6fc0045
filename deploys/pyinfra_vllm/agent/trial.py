"""A switch is a trial: when a release has had its chance, and why the head goes back. Pure.

A trial begins with a wish for a release that isn't the one that served last, and ends with
its first completion. It fails when two engines died before that, when a rank doesn't have
the release, or when its time is up. Time counts only while all ranks are connected and the
gang isn't paused. It is extended, up to :data:`LONGEST` times what was allowed, while the
head's engine still writes to its log: loading weights for longer than usual is progress, a
silent engine isn't, and one that repeats a warning for ever ends at the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import pace

DEATHS = 2
"""So many engines that died before a first completion end a trial."""
LONGEST = 2.0
"""Times the allowed seconds that a start may take while it makes progress."""
QUIET = pace.seconds(120.0)
"""Seconds without a line of the engine after which it makes no progress."""


@dataclass(frozen=True)
class Terms:
    """What ``wanted.json`` allows. ``previous`` "": there is nothing to go back to.

    ``seconds``: for the first completion. ``lease``: seconds without a sign of the
    controller after which the head goes back even from a release that serves, 0 for none.
    """

    release: str
    switch: int
    previous: str
    seconds: float
    lease: float = 0.0


@dataclass(frozen=True)
class Trial:
    """How far one is. ``deaths``: what is known of each. ``over``: why it failed, "" until then."""

    release: str
    switch: int
    counted: float = 0.0
    deaths: tuple[str, ...] = ()
    over: str = ""

    def counts(self, seconds: float) -> Trial:
        """Time has passed while all ranks were connected."""
        return replace(self, counted=self.counted + max(0.0, seconds))

    def died(self, text: str) -> Trial:
        """An engine died before the first completion of its start."""
        return replace(self, deaths=(*self.deaths, text)[-DEATHS:])

    def is_of(self, terms: Terms) -> bool:
        """Whether this trial is the one of these terms, not of an earlier wish."""
        return (self.release, self.switch) == (terms.release, terms.switch)


@dataclass(frozen=True)
class Seen:
    """``absent``: which rank doesn't have the release, "" for none.

    ``quiet``: seconds since the last line of the head's engine; None: it wrote none, or the
    journal can't be asked. ``unheard``: seconds since the controller's last sign.
    """

    absent: str = ""
    quiet: float | None = None
    unheard: float = 0.0


def of(terms: Terms | None, passed: str, known: Trial | None) -> Trial | None:
    """The trial that is on now, if one is. ``passed``: the release that served last."""
    if terms is None or not terms.seconds or terms.release == passed:
        return None
    return known if known and known.is_of(terms) else Trial(terms.release, terms.switch)


def is_time_up(terms: Terms, trial: Trial) -> bool:
    """Whether it depends on progress now how long the trial goes on."""
    return trial.counted >= terms.seconds


def failure(terms: Terms, trial: Trial, seen: Seen) -> str:
    """Why the trial has failed, "" while it goes on."""
    if trial.over:
        return trial.over
    if seen.absent:
        return f"a rank lacks the release: {seen.absent}"
    if len(trial.deaths) >= DEATHS:
        return (
            f"{len(trial.deaths)} engines died before a first completion, "
            f"the last: {trial.deaths[-1]}"
        )
    if not is_time_up(terms, trial) or _progresses(terms, trial, seen):
        return ""
    return f"no first completion in {trial.counted:.0f} s"


def _progresses(terms: Terms, trial: Trial, seen: Seen) -> bool:
    is_talking = seen.quiet is not None and seen.quiet < QUIET
    return is_talking and trial.counted < LONGEST * terms.seconds


def lost_lease(terms: Terms | None, seen: Seen) -> str:
    """Why the head goes back from a release that was only lent, "" while it stays."""
    if terms is None or not terms.lease or seen.unheard <= terms.lease:
        return ""
    return f"nobody who runs the trial was heard of for {terms.lease:.0f} s"


def wish_to_go_back(wanted: dict[str, object], why: str, at: float) -> dict[str, object]:
    """The ``wanted.json`` that takes back ``wanted``: what served before is wanted again."""
    earlier = wanted.get("earlier")
    stack = [item for item in earlier if isinstance(item, str)] if isinstance(earlier, list) else []
    switch = wanted.get("switch")
    number = switch if isinstance(switch, int) else 0
    return {
        "schema": 1,
        "release": wanted["previous"],
        "previous": stack[0] if stack else None,
        "earlier": stack[1:],
        "deadline": None,
        "switch": number + 1,
        "kind": "back",
        "by": {"who": "the head"},
        "back": {"from": wanted["release"], "switch": number, "why": why, "at": at},
    }
