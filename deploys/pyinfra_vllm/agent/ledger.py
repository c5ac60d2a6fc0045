"""The head's book of starts: it records how each began and ended, and holds back the next."""

from __future__ import annotations

from collections.abc import Callable

from . import history, paths
from .events import Hold, Moment
from .history import Book, Death
from .state import CODE_DOCKER, State
from .wish import Wish


class Ledger:
    """``log``: where a record that can't be written is complained of."""

    def __init__(self, gang: str, log: Callable[[str], None]) -> None:
        self._book = Book.open(paths.here(paths.starts(gang)))
        self._log = log
        self._switch = 0

    @property
    def next_number(self) -> int:
        """Number of the next start."""
        return self._book.history.number + 1

    @property
    def is_broken(self) -> bool:
        """Whether a start has collapsed and the gang has not served since."""
        return self._book.history.broken

    def hold(self, wish: Wish, now: Moment) -> Hold | None:
        """Why no start may be opened now, None when nothing forbids it."""
        self._switch = wish.switch
        if wish.paused:
            return Hold("paused", wish.paused)
        if wish.missing:
            return Hold("waiting", wish.missing)
        given_up = self._book.history.gave_up(wish.release, wish.switch, now.wall)
        if given_up:
            return Hold("failed", given_up)
        at = self._book.history.next_start(now.wall)
        if now.wall < at < now.wall + 2 * history.WINDOW:
            return Hold("waiting", f"the next start is at {history.clock(at)}: too many collapses")
        return None

    def watch(self, before: State, after: State, now: Moment) -> None:
        """Record what has changed between two states."""
        was, is_now = before.tether, after.tether
        if was.stage == is_now.stage and was.served == is_now.served:
            return
        known = self._book.history
        if is_now.stage == "running" and was.stage != "running":
            known = known.opened()
        if is_now.served and not was.served:
            known = known.serving()
        if is_now.stage == "ending" and was.stage == "running" and after.phase == "failed":
            known = known.collapsed(now.wall, self._death(after, now))
        if known != self._book.history:
            self._book.keep(known)
            if self._book.trouble:
                self._log(f"the record of starts is not kept: {self._book.trouble}")

    def _death(self, state: State, now: Moment) -> Death | None:
        """A death that counts: an engine's own exit before the start's first completion."""
        end = state.tether.end
        if end is None or end.code in (None, CODE_DOCKER) or state.tether.served:
            return None
        return Death(now.wall, state.tether.wanted, self._switch, state.detail)
