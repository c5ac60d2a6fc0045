"""The main loop: one selector; signals and ended children come through a wakeup descriptor."""

from __future__ import annotations

import functools
import os
import selectors
import shlex
import signal
import socket
import subprocess
import time

from . import clear, phases, prepare, probe
from .crew import Crew
from .events import (
    Action,
    Ask,
    Clear,
    Event,
    Exited,
    Leave,
    Missing,
    Moment,
    Prepare,
    Start,
    StopAsked,
    Tick,
)
from .jobs import Job
from .phases import State
from .report import Report

_TICK = 1.0


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

    def run(self) -> int:
        """Exit code of the agent: 0 after a stop that was asked for, else the unit restarts."""
        self._listen()
        state, actions = phases.begin(_now(), self._report.last_failure())
        self._plan(actions)
        self._report.ready()
        while self._code is None:
            self._report.tell(state)
            state = self._follow(state, self._wait())
            state = self._follow(state, self._act())
        self._report.tell(state)
        self._crew.end()
        if self._engine is not None and self._engine.poll() is None:
            self._engine.kill()
        return self._code

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

    def _follow(self, state: State, events: list[Event]) -> State:
        for event in events:
            state, actions = phases.step(state, event, _now())
            self._plan(actions)
        return state

    def _plan(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Clear):
                self._due.clear()
            self._due.append((time.monotonic() + getattr(action, "delay", 0.0), action))

    def _wait(self) -> list[Event]:
        now = time.monotonic()
        timeout = min([_TICK, *(max(0.0, at - now) for at, _ in self._due)])
        events: list[Event] = []
        for key, _ in self._selector.select(timeout):
            if isinstance(key.fileobj, Job):
                events += self._crew.hear(key.fileobj)
            else:
                self._wakeup[0].recv(4096)
        if self._stop_asked:
            self._stop_asked = False
            events.append(StopAsked())
        return [*events, *self._crew.late(), *self._engine_exit(), Tick()]

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
            case Prepare():
                return self._prepare()
            case Start(argv):
                return self._start(argv)
            case Ask(prepared):
                seconds = prepared.start_timeout
                work = functools.partial(probe.ask, prepared.api, prepared.api_key, seconds)
                self._crew.start("ask", work, seconds)
            case Clear(gently):
                self._clear(gently)
            case Leave(code):
                self._code = code
        return []

    def _prepare(self) -> list[Event]:
        hanging = self._crew.hanging("prepare")
        if hanging is not None:
            return [Missing(f"{hanging.last_step}: still hangs (pid {hanging.pid})")]
        self._crew.start("prepare", functools.partial(prepare.prepare, self._gang))
        return []

    def _start(self, argv: tuple[str, ...]) -> list[Event]:
        self._report.log("starts: " + shlex.join(argv))
        try:
            self._engine = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/"
            )
        except OSError as error:
            self._report.log(f"{argv[0]}: {os.strerror(error.errno or 0)}")
            return [Exited(127)]
        return []

    def _clear(self, gently: bool) -> None:
        self._crew.dismiss("prepare")
        self._crew.dismiss("ask")
        self._crew.dismiss("clear")
        client = self._engine.pid if self._engine and self._engine_code is None else None
        work = functools.partial(clear.clear, self._gang, gently, self._engine_code, client)
        self._crew.start("clear", work)


def _now() -> Moment:
    return Moment(time.time(), time.monotonic())
