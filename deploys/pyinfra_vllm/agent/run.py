"""The main loop: one selector; signals and ended children come through a wakeup descriptor."""

from __future__ import annotations

import functools
import os
import secrets
import selectors
import shlex
import signal
import socket
import subprocess
import time
from dataclasses import replace
from typing import Any

from . import alert, clear, lines, members, paths, phases, prepare, probe, secret_values, tether
from .alert import Alerts
from .crew import Crew
from .errors import Unmet
from .events import (
    Action,
    Ask,
    Clear,
    Event,
    Exited,
    Launch,
    Leave,
    Missing,
    Moment,
    Prepare,
    StopAsked,
    Tick,
    Tidied,
    Tidy,
    Watch,
    Wished,
)
from .jobs import Job
from .ledger import Ledger
from .lines import Lines
from .members import Members
from .naming import missing
from .report import Report
from .wish import Wishes

_TICK = min(1.0, lines.BEAT / 2)


class Agent:
    """One run: from the start of the unit to the end of its engine."""

    def __init__(self, gang: str, report: Report) -> None:
        self._gang = gang
        self._report = report
        self._selector = selectors.DefaultSelector()
        self._crew = Crew(self._selector, report.log)
        self._due: list[tuple[float, Action]] = []
        self._engine: subprocess.Popen[bytes] | None = None
        self._engine_code: int | None = None
        self._stop_asked = False
        self._code: int | None = None
        self._ledger = Ledger(gang, report.log)
        self._wishes = Wishes(gang)
        self._wished: Wished | None = None
        self._alerts = Alerts()
        self._lines: Lines | None = None
        self._drains = False

    def run(self) -> int:
        """Exit code of the agent: 0 after a stop that was asked for, else the unit restarts."""
        self._listen()
        self._report.ready()
        joined = self._join()
        if joined is None:
            return 0
        self._members, self._lines = joined
        self._state, actions = phases.begin(
            self._tether(), self._names(), _now(), self._report.last_failure()
        )
        self._was_broken = self._ledger.is_broken
        self._plan(actions)
        while self._code is None:
            self._report.tell(self._state)
            self._follow(self._wait())
            self._follow(self._beat())
            self._follow(self._act())
            self._alert()
        self._report.tell(self._state)
        self._lines_end()
        self._crew.end()
        if self._engine is not None and self._engine.poll() is None:
            self._engine.kill()
        return self._code

    def _join(self) -> tuple[Members, Lines] | None:
        """Who belongs to the gang, as soon as the deploy has said it; None after a stop."""
        while not self._stop_asked:
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
        if self._members.rank != tether.HEAD:
            return tether.worker(self._members.rank)
        start = tether.Start(self._ledger.next_number, secrets.token_hex(16))
        return tether.head(self._members.size, start)

    def _names(self) -> tuple[str, ...]:
        return tuple(self._members.name(rank) for rank in range(self._members.size))

    def _listen(self) -> None:
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self._wakeup = (reader, writer)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(reader, selectors.EVENT_READ)

    def _on_stop(self, *_: object) -> None:
        self._stop_asked = True

    def _follow(self, events: list[Event]) -> None:
        for event in events:
            before, now = self._state, _now()
            self._state, actions = phases.step(before, event, now)
            if self._members.rank == tether.HEAD:
                self._ledger.watch(before, self._state, now)
            if actions:
                self._plan(actions)

    def _plan(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Clear):
                self._due.clear()
            if isinstance(action, Prepare):
                self._due = [due for due in self._due if not isinstance(due[1], Prepare)]
            self._due.append((time.monotonic() + getattr(action, "delay", 0.0), action))

    def _wait(self) -> list[Event]:
        now = time.monotonic()
        timeout = min([_TICK, *(max(0.0, at - now) for at, _ in self._due)])
        events: list[Event] = []
        for key, _ in self._selector.select(timeout):
            if isinstance(key.fileobj, Job):
                events += self._crew.hear(key.fileobj)
            elif key.fileobj is self._wakeup[0]:
                self._wakeup[0].recv(4096)
            elif self._lines is not None:
                events += self._lines.ready(key.fileobj)
        if self._stop_asked:
            self._stop_asked = False
            events.append(StopAsked())
        return [*events, *self._crew.late(), *self._engine_exit(), *self._wish()]

    def _wish(self) -> list[Event]:
        """Head: what the files say, when that has changed."""
        if self._members.rank != tether.HEAD:
            return []
        wish = self._wishes.look()
        wished = Wished(wish.release, self._ledger.hold(wish, _now()))
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

    def _engine_exit(self) -> list[Event]:
        if self._engine is None or self._engine_code is not None:
            return []
        code = self._engine.poll()
        if code is None:
            return []
        self._engine_code = code if code >= 0 else 128 - code
        return [Exited(self._engine_code)]

    def _act(self) -> list[Event]:
        now = time.monotonic()
        ready = [action for at, action in self._due if at <= now]
        self._due = [(at, action) for at, action in self._due if at > now]
        return [event for action in ready for event in self._do(action)]

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
                work = functools.partial(probe.watch, prepared.api, prepared.api_key, press)
                self._crew.start("watch", work)
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

    def _launch(self, argv: tuple[str, ...], start: tether.Start) -> list[Event]:
        self._crew.dismiss("prepare")
        self._due = [due for due in self._due if not isinstance(due[1], Prepare)]
        trouble = prepare.move_current(self._gang, self._state.release or "")
        if trouble:
            self._report.log(trouble)
        argv = (*argv[:2], "--label", f"{paths.LABEL_START}={start.number}", *argv[2:])
        self._report.log(f"start {start.number}: " + shlex.join(argv))
        try:
            self._engine = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=secret_values.environ(self._gang, argv),
            )
        except OSError as error:
            self._report.log(f"{argv[0]}: {os.strerror(error.errno or 0)}")
            return [Exited(127)]
        except Unmet as unmet:
            self._report.log(str(unmet))
            return [Exited(127)]
        return []

    def _clear(self, gently: bool) -> None:
        for name in ("tidy", "prepare", "ask", "watch", "clear"):
            self._crew.dismiss(name)
        self._drains = gently and self._engine is not None
        if not self._drains:
            self._lines_end()
        client = self._engine.pid if self._engine and self._engine_code is None else None
        about = clear.about(self._state, self._engine_code)
        work = functools.partial(clear.clear, self._gang, gently, self._engine_code, client, about)
        self._crew.start("clear", work)

    def _lines_end(self) -> None:
        """The others hear of the end at once, not when everything is cleared."""
        if self._lines is not None:
            self._lines.end(self._state.tether)

    def _alert(self) -> None:
        due = self._alerts.due(self._state, self._was_broken, _now())
        if due and self._members.alert:
            work = functools.partial(alert.tell, self._members.alert, self._gang, *due)
            self._crew.start("alert", work)


def _now() -> Moment:
    return Moment(time.time(), time.monotonic())
