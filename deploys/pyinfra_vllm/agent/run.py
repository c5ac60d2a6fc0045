"""The main loop: one selector; signals and ended children come through a wakeup descriptor."""

from __future__ import annotations

import functools
import secrets
import selectors
import time
from dataclasses import replace
from typing import Any

from . import alert, clear, evidence, inside, line, members, phases, prepare, probe, tether
from .actions import (
    Action,
    Ask,
    Clear,
    Launch,
    Leave,
    Listen,
    Prepare,
    Tidy,
    Watch,
)
from .agenda import Agenda
from .alert import Alerts
from .crew import Crew
from .engine import Engine
from .errors import Unmet
from .events import (
    Event,
    Missing,
    Moment,
    StopAsked,
    Tick,
    Tidied,
    Wished,
)
from .jobs import Job
from .ledger import Ledger
from .lines import Lines
from .members import Members
from .naming import missing
from .report import Report
from .said import HEAD, Start
from .signals import Signals

_TICK = min(1.0, line.BEAT / 2)


class Agent:
    """One run: from the start of the unit to the end of its engine."""

    def __init__(self, gang: str, report: Report) -> None:
        self._gang = gang
        self._report = report
        self._selector = selectors.DefaultSelector()
        self._crew = Crew(self._selector, report.log)
        self._agenda = Agenda()
        self._engine = Engine(gang, report.log)
        self._code: int | None = None
        self._ledger = Ledger(gang, report.log)
        self._wished: Wished | None = None
        self._alerts = Alerts()
        self._lines: Lines | None = None
        self._drains = False

    def run(self) -> int:
        """Exit code of the agent: 0 after a stop that was asked for, else the unit restarts."""
        self._signals = Signals(self._selector)
        self._report.ready()
        joined = self._join()
        if joined is None:
            return 0
        self._members, self._lines = joined
        self._state, actions = phases.begin(
            self._tether(), self._names(), _now(), self._report.last_failure()
        )
        self._was_broken = self._ledger.is_broken
        self._agenda.add(actions)
        while self._code is None:
            self._report.tell(self._state)
            self._follow(self._wait())
            self._follow(self._beat())
            self._follow([event for action in self._agenda.take() for event in self._do(action)])
            self._alert()
        self._report.tell(self._state)
        self._lines_end()
        self._crew.end()
        self._engine.end()
        return self._code

    def _join(self) -> tuple[Members, Lines] | None:
        """Who belongs to the gang, as soon as the deploy has said it; None after a stop."""
        while not self._signals.stop_asked:
            try:
                known = members.load(self._gang)
                secret = members.secret(self._gang) if known.size > 1 else b""
                found = Lines(self._selector, known, secret, self._report.log)
                found.open()
                return known, found
            except (Unmet, OSError) as error:
                text = str(error) if isinstance(error, Unmet) else f"own address: {error.strerror}"
                self._report.wait(text)
            self._selector.select(phases.LOOK_AGAIN)
        return None

    def _tether(self) -> tether.Tether:
        if self._members.rank != HEAD:
            return tether.worker(self._members.rank)
        start = Start(self._ledger.next_number, secrets.token_hex(16))
        return tether.head(self._members.size, start)

    def _names(self) -> tuple[str, ...]:
        return tuple(self._members.name(rank) for rank in range(self._members.size))

    def _follow(self, events: list[Event]) -> None:
        for event in events:
            before, now = self._state, _now()
            self._state, actions = phases.step(before, event, now)
            if self._members.rank == HEAD:
                self._ledger.watch(before, self._state, now)
            self._agenda.add(actions)

    def _wait(self) -> list[Event]:
        events: list[Event] = []
        assert self._lines is not None
        most = self._lines.seconds(self._state.tether.stage, _TICK)
        for key, _ in self._selector.select(self._agenda.seconds(most)):
            if isinstance(key.fileobj, Job):
                events += self._crew.hear(key.fileobj)
            elif key.fileobj is self._signals.reader:
                self._signals.heard()
            else:
                events += self._lines.ready(key.fileobj)
        if self._signals.take_stop():
            events.append(StopAsked())
        return [*events, *self._crew.late(), *self._engine.exited(), *self._wish()]

    def _wish(self) -> list[Event]:
        """Head: what the files say, when that has changed."""
        if self._members.rank != HEAD:
            return []
        wished = self._ledger.wished(self._state, _now())
        if wished == self._wished:
            return []
        self._wished = wished
        return [wished]

    def _beat(self) -> list[Event]:
        assert self._lines is not None
        speaks = self._state.tether
        if self._drains:
            speaks = replace(speaks, stage="running", end=None)
        events = self._lines.beat(speaks, missing(speaks, self._state.names))
        return [*events, Tick(self._lines.trouble)]

    def _do(self, action: Action) -> list[Event]:
        match action:
            case Tidy():
                return self._job("tidy", functools.partial(prepare.tidy, self._gang))
            case Prepare(release):
                work = functools.partial(prepare.prepare, self._gang, release)
                return self._job("prepare", work, release)
            case Launch(prepared, start):
                return self._launch(prepared.argv, start)
            case Ask(prepared):
                seconds = prepared.start_timeout
                work = functools.partial(probe.ask, prepared.api, prepared.api_key, seconds)
                self._crew.start("ask", work, seconds)
            case Watch(prepared, press):
                about = (prepared.api, prepared.api_key, press, self._state.wished.lent)
                self._crew.start("watch", functools.partial(probe.watch, *about))
            case Listen():
                self._crew.start("listen", evidence.quiet)
            case Clear(gently):
                self._clear(gently)
            case Leave(code):
                self._code = code
        return []

    def _job(self, name: Any, work: Any, release: str = "") -> list[Event]:
        hanging = self._crew.hanging(name)
        if hanging is not None:
            what = f"{hanging.last_step}: still hangs (pid {hanging.pid})"
            return [Missing(release, what) if release else Tidied(what)]
        self._crew.dismiss(name)
        self._crew.start(name, work, about=release)
        return []

    def _launch(self, argv: tuple[str, ...], start: Start) -> list[Event]:
        self._crew.dismiss("prepare")
        self._agenda.drop_looks()
        trouble = prepare.move_current(self._gang, self._state.release or "")
        if trouble:
            self._report.log(trouble)
        failed = self._engine.start(argv, start.number)
        if not failed:
            work = functools.partial(inside.look, self._gang, self._state.release or "")
            self._crew.start("look", work)
        return failed

    def _clear(self, gently: bool) -> None:
        for name in ("tidy", "prepare", "look", "ask", "watch", "listen", "clear"):
            self._crew.dismiss(name)
        self._drains = gently and self._engine.was_started
        if not self._drains:
            self._lines_end()
        code, client = self._engine.code, self._engine.pid
        about = clear.about(self._state, code)
        work = functools.partial(clear.clear, self._gang, gently, code, client, about)
        self._crew.start("clear", work)

    def _lines_end(self) -> None:
        """The others hear of the end at once, not when everything is cleared."""
        if self._lines is not None:
            self._lines.end(self._state.tether)

    def _alert(self) -> None:
        if not self._members.alert or self._crew.has("alert"):
            return
        due = self._ledger.alert() or self._alerts.due(self._state, self._was_broken, _now())
        if due:
            work = functools.partial(alert.tell, self._members.alert, self._gang, *due)
            self._crew.start("alert", work)


def _now() -> Moment:
    return Moment(time.time(), time.monotonic())
