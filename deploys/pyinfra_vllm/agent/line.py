"""One connection between the head and a worker: a socket around :mod:`wire`. Never blocks."""

from __future__ import annotations

import errno
import socket
import time
from contextlib import suppress

from . import pace, tether_events
from .said import HEAD, Said
from .wire import Broken, Session

LATE = pace.seconds(30.0)
"""Seconds without a word after which the other end counts as gone."""
BEAT = LATE / 6
_GREETED = max(2.0, LATE / 6)
"""Seconds that a worker gives the head to answer its dialling."""

Moved = tether_events.Joined | tether_events.Heard | tether_events.Lost


class Line:
    """One connection."""

    def __init__(self, link: socket.socket, session: Session, rank: int) -> None:
        link.setblocking(False)
        self.link = link
        self.session = session
        self.rank = rank
        self.joined = False
        self.heard_at = time.monotonic()
        self._said: Said | None = None
        self._said_at = 0.0

    def fileno(self) -> int:
        return self.link.fileno()

    def say(self, said: Said) -> None:
        """Send what is new, and again what is not when a beat is due."""
        now = time.monotonic()
        if self.joined and (said != self._said or now - self._said_at >= BEAT):
            self.session.say(said)
            self._said, self._said_at = said, now
        self.flush()

    def flush(self) -> None:
        """Send what can be sent; Broken when the connection is gone."""
        try:
            while self.session.out:
                self.session.out = self.session.out[self.link.send(self.session.out) :]
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                return
            raise Broken(error.strerror or "the connection broke") from None

    def hear(self) -> list[Moved]:
        """What came in; Broken when the connection is gone or the other end is no member."""
        try:
            data = self.link.recv(65536)
        except BlockingIOError:
            return []
        except OSError as error:
            raise Broken(error.strerror or "the connection broke") from None
        if not data:
            raise Broken("the connection was closed")
        said = self.session.feed(data)
        events: list[Moved] = []
        if self.session.is_proven and not self.joined:
            self.joined = True
            events.append(tether_events.Joined(self.rank))
        if self.joined:
            self.heard_at = time.monotonic()
        return events + [tether_events.Heard(self.rank, word) for word in said]

    def is_late(self) -> bool:
        """Whether the other end has been silent too long."""
        limit = _GREETED if self.rank == HEAD and not self.joined else LATE
        return time.monotonic() - self.heard_at > limit

    def close(self) -> None:
        """Let go; what is unread is read first, or it would take our last word with it."""
        with suppress(OSError):
            self.link.recv(65536)
        self.link.close()
