"""The connections between the head and its workers: sockets around :mod:`wire`.

The head listens on its fabric address, and only listed addresses are let in; a worker
dials from its own. Nothing here blocks. Both ends beat from the first byte on.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from . import pace, tether, tether_events
from .line import Line, Moved
from .members import Members
from .said import HEAD
from .tether import Tether
from .wire import Broken, Role, Session

REDIAL = pace.seconds(0.25)
"""Seconds between two dials of a worker: after a switch its head is there in a moment."""
_REFUSAL = 60.0
"""Seconds between two journal lines about connections refused to one rank's address."""
_MOST_STRANGERS = 16
"""Connections that have proven nothing yet; one more, and the oldest is dropped."""


class Lines:
    """All connections of one rank. ``trouble``: why a worker has none."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        members: Members,
        secret: bytes,
        log: Callable[[str], None],
    ) -> None:
        self._selector = selector
        self._members = members
        self._secret = secret
        self._log = log
        self._role: Role = "head" if members.rank == HEAD else "worker"
        self._lines: list[Line] = []
        self._listener: socket.socket | None = None
        self._dial_at = 0.0
        self._refusal_at: dict[int, float] = {}
        self.trouble = ""

    def open(self) -> None:
        """Head: listen. OSError when the address isn't there (yet) or the port is taken."""
        if self._role == "worker" or self._members.size == 1 or self._listener:
            return
        address = self._members.addresses[HEAD]
        self._listener = socket.create_server(
            (address, self._members.port), family=_family(address), backlog=64
        )
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def ready(self, source: object) -> list[Moved]:
        """What a file object that the selector names has for us."""
        if source is self._listener:
            self._accept()
        elif isinstance(source, Line) and source in self._lines:
            return self._guarded(source, source.hear)
        return []

    def seconds(self, stage: str, most: float) -> float:
        """Seconds until :meth:`beat` has something to do, ``most`` at most."""
        dials = self._role == "worker" and not self._lines and stage == "assembling"
        return min(REDIAL, most) if dials else most

    def beat(self, now: Tether, note: str = "") -> list[Moved]:
        """Say what this rank is, dial if need be, give up what is late.

        ``note``: what the head waits for, which the workers show.
        """
        if self._role == "worker" and not self._lines and now.stage == "assembling":
            self._dial()
        events: list[Moved] = []
        for line in list(self._lines):
            events += self._guarded(line, partial(self._beat, line, now, note))
        return events

    @staticmethod
    def _beat(line: Line, now: Tether, note: str) -> list[Moved]:
        if line.is_late():
            raise Broken("no beat in time")
        said = tether.says(now, line.rank)
        line.say(replace(said, text=note) if said.word == "want" else said)
        return []

    def _guarded(self, line: Line, work: Callable[[], list[Moved]]) -> list[Moved]:
        try:
            events = work()
        except Broken as broken:
            return self._drop(line, str(broken))
        if any(isinstance(event, tether_events.Joined) for event in events):
            for other in [old for old in self._lines if old.rank == line.rank and old is not line]:
                self._drop(other, "another one took its place")
        return events

    def _drop(self, line: Line, why: str) -> list[Moved]:
        self._selector.unregister(line)
        self._lines.remove(line)
        line.close()
        if self._role == "worker":
            self.trouble = why
        elif not line.joined:
            self._refused(line.rank, why)
        return [tether_events.Lost(line.rank, why)] if line.joined else []

    def _refused(self, rank: int, why: str) -> None:
        """Say it, but let nobody fill the journal."""
        now = time.monotonic()
        if now >= self._refusal_at.get(rank, 0.0):
            self._refusal_at[rank] = now + _REFUSAL
            self._log(f"a connection from {self._members.name(rank)} was refused: {why}")

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            link, peer = self._listener.accept()
        except OSError:
            return
        ranks = [rank for rank, known in enumerate(self._members.addresses) if known == peer[0]]
        if not ranks or ranks[0] == HEAD:
            link.close()
            return
        strangers = [line for line in self._lines if not line.joined]
        if len(strangers) >= _MOST_STRANGERS:
            self._drop(strangers[0], "too many that prove nothing")
        self._add(Line(link, Session(self._secret, "head", ranks[0]), ranks[0]))

    def _dial(self) -> None:
        now = time.monotonic()
        if now < self._dial_at:
            return
        self._dial_at = now + REDIAL
        own, head = self._members.addresses[self._members.rank], self._members.addresses[HEAD]
        link = socket.socket(_family(head), socket.SOCK_STREAM)
        link.setblocking(False)
        try:
            link.bind((own, 0))
        except OSError as error:
            self.trouble = f"own address {own}: {error.strerror}"
            link.close()
            return
        code = link.connect_ex((head, self._members.port))
        if code not in (0, errno.EINPROGRESS):
            self.trouble = os.strerror(code)
            link.close()
            return
        self._add(Line(link, Session(self._secret, "worker", self._members.rank), HEAD))

    def _add(self, line: Line) -> None:
        self._lines.append(line)
        self._selector.register(line, selectors.EVENT_READ)

    def end(self, now: Tether) -> None:
        """Say the last word on every connection, and let go of all."""
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        for line in list(self._lines):
            self._guarded(line, partial(self._beat, line, now, ""))
            if line in self._lines:
                self._selector.unregister(line)
                line.close()
        self._lines.clear()


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
