"""The head's book: what is wished, how starts and switches went, and what holds back the next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import history, pace, paths, sight, switches, trial
from .events import Hold, Moment, Wished
from .history import Book, Death, History
from .state import CODE_DOCKER, State
from .trial import Terms, Trial
from .wish import Wish, Wishes

_KEEP = pace.seconds(5.0)
"""Seconds of a trial that are counted between two writings of the book."""


class Ledger:
    """``log``: where a record that can't be written is complained of."""

    def __init__(self, gang: str, log: Callable[[str], None]) -> None:
        self._gang = gang
        self._log = log
        self._book = Book.open(paths.here(paths.starts(gang)))
        # A start that served when its agent was killed has ended by now.
        self._book.history = self._book.history.down(time.time())
        self._wishes = Wishes(gang)
        self._wish = Wish("", 0, "")
        self._looked: float | None = None
        self._uncounted = 0.0
        self._complaint = ""

    @property
    def next_number(self) -> int:
        """Number of the next start."""
        return self._book.history.number + 1

    @property
    def is_broken(self) -> bool:
        """Whether a start has collapsed and the gang has not served since."""
        return self._book.history.broken

    def wished(self, state: State, now: Moment) -> Wished:
        """What the files say, after the head has gone back if that was due."""
        wish = self._wish = self._wishes.look()
        self._tell(wish, now, "asked", **sight.asked(wish))
        on_trial = trial.of(wish.terms, self._book.history.passed, self._book.history.trial)
        why = self._why_back(wish, on_trial, state, now)
        if why and wish.terms and self._goes_back(wish, wish.terms, why, now):
            wish = self._wish = self._wishes.look()
            on_trial = None
        return Wished(
            wish.release,
            self._hold(wish, now),
            wish.switch,
            self._book.history.passed,
            wish.note,
            on_trial is not None,
            bool(wish.terms and wish.terms.lease),
        )

    def _why_back(self, wish: Wish, on_trial: Trial | None, state: State, now: Moment) -> str:
        seconds = now.steady - self._looked if self._looked is not None else 0.0
        self._looked = now.steady
        if wish.terms is None or state.tether.stage == "ending":
            return ""
        unheard = self._wishes.unheard() if wish.terms.lease else 0.0
        seen = sight.seen(state, unheard, now)
        if on_trial is None:
            return trial.lost_lease(wish.terms, seen)
        if sight.all_connected(state) and not wish.paused:
            on_trial = on_trial.counts(seconds)
            self._uncounted += seconds
        why = trial.failure(wish.terms, on_trial, seen) or trial.lost_lease(wish.terms, seen)
        known = self._book.history = replace(self._book.history, trial=on_trial)
        if self._uncounted > _KEEP:
            self._uncounted = 0.0
            self._keep(known)
        return why

    def _goes_back(self, wish: Wish, terms: Terms, why: str, now: Moment) -> bool:
        """Write the earlier wish; where there is none, a trial that failed ends the trying."""
        known = self._book.history
        if not terms.previous or not self._wishes.has_files_of(terms.previous):
            if known.trial and known.trial.is_of(terms) and not known.trial.over:
                self._keep(replace(known, trial=replace(known.trial, over=why)))
            return False
        try:
            self._wishes.replace(trial.wish_to_go_back(wish.whole, why, now.wall))
        except OSError as error:
            self._complain(f"the head can't go back to {terms.previous[:12]}: {error.strerror}")
            return False
        self._tell(wish, now, "rolled back", to=terms.previous, why=why)
        self._log(f"rolled back from {wish.release[:12]} to {terms.previous[:12]}: {why}")
        return True

    def _hold(self, wish: Wish, now: Moment) -> Hold | None:
        """Why no start may be opened now, None when nothing forbids it."""
        if wish.paused:
            return Hold("paused", wish.paused)
        if wish.missing:
            return Hold("waiting", wish.missing)
        given_up = self._given_up(wish, now)
        if given_up:
            self._tell(wish, now, "gave up", why=given_up)
            return Hold("failed", given_up)
        at = self._book.history.next_start(now.wall)
        if now.wall < at < now.wall + 2 * history.WINDOW:
            return Hold("waiting", f"the next start is at {history.clock(at)}: too many collapses")
        return None

    def _given_up(self, wish: Wish, now: Moment) -> str:
        known = self._book.history
        if wish.terms and known.trial and known.trial.is_of(wish.terms) and known.trial.over:
            return (
                f"gave up: {known.trial.over}; there is no earlier release to go back to; "
                "deploy, or run deploys/resume.py, to try again"
            )
        return known.gave_up(wish.release, wish.switch, now.wall)

    def watch(self, before: State, after: State, now: Moment) -> None:
        """Record what has changed between two states."""
        was, is_now = before.tether, after.tether
        if was.stage == is_now.stage and was.served == is_now.served:
            return
        known = self._book.history
        if is_now.stage == "running" and was.stage != "running":
            known = known.opened()
        if is_now.served and not was.served:
            self._tell_serving(after, now)
            known = self._book.history.serving(is_now.wanted)
        if is_now.stage == "ending" and was.stage == "running":
            known = self._ended(known.down(now.wall), after, now)
        self._keep(known)

    def _ended(self, known: History, state: State, now: Moment) -> History:
        if state.phase != "failed":
            return known
        death = self._death(state, now)
        if known.trial and sight.has_exited(state):
            known = replace(known, trial=known.trial.died(state.detail))
        return known.collapsed(now.wall, death)

    def _death(self, state: State, now: Moment) -> Death | None:
        """A death that counts: an engine's own exit before the start's first completion."""
        end = state.tether.end
        if end is None or end.code == CODE_DOCKER or not sight.has_exited(state):
            return None
        return Death(now.wall, state.tether.wanted, self._wish.switch, state.detail)

    def _tell_serving(self, state: State, now: Moment) -> None:
        since, began = self._book.history.down_since, state.engine_started or now
        start = state.tether.start
        self._tell(
            self._wish, now, "serving",
            start=start.number if start else None,
            engine=round(now.steady - began.steady, 1),
            without=None if since is None else round(max(0.0, now.wall - since), 1),
        )  # fmt: skip

    def _tell(self, wish: Wish, now: Moment, event: str, **about: Any) -> None:
        """A line of the history, once for each wish."""
        if not wish.release:
            return
        known = self._book.history.wished(wish.switch)
        after = known.telling(event)
        if after == known:
            return
        trouble = switches.record(self._gang, event, now.wall, wish.switch, wish.release, **about)
        if trouble:
            self._complain(f"the history is not kept: {trouble}")
        self._keep(after)

    def alert(self) -> tuple[str, str] | None:
        """Kind and message of what people are to hear of this wish, once."""
        known = self._book.history.wished(self._wish.switch)
        if not self._wish.note or known.telling("alert") == known:
            return None
        self._keep(known.telling("alert"))
        return "rolled back", self._wish.note

    def _keep(self, known: History) -> None:
        if known == self._book.kept:
            return
        self._book.keep(known)
        if self._book.trouble:
            self._complain(f"the record of starts is not kept: {self._book.trouble}")

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._log(text)
        self._complaint = text
