"""The phases of one run of the agent as a pure machine: state and event in, state and actions out.

A run goes preparing → (waiting →) starting → serving, and ends failed or
stopping. Only the head can know that the gang serves, because only it answers
requests: a worker stays *starting* for as long as its engine runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import pace
from .events import (
    Action,
    Ask,
    Clear,
    Cleared,
    Completed,
    Event,
    Exited,
    Known,
    Leave,
    Missing,
    Moment,
    NotYet,
    Prepare,
    Prepared,
    Start,
    Step,
    StopAsked,
    Tick,
)
from .status import Failure, Phase

LOOK_AGAIN = pace.seconds(3.0)
"""Seconds between two looks at the preconditions."""
ASK_AGAIN = pace.seconds(1.0)
"""Seconds between two questions for the first completion."""
CODE_TIMEOUT = 124
"""Code of a failure where no engine exited, as timeout(1) has it."""


@dataclass(frozen=True)
class State:
    """Everything that decides what comes next."""

    phase: Phase
    since: float
    detail: str = ""
    release: str | None = None
    rank: int | None = None
    prepared: Prepared | None = None
    engine_started: Moment | None = None
    last_failure: Failure | None = None

    def to(self, phase: Phase, detail: str, now: Moment) -> State:
        """This state in another phase; ``since`` moves only with the phase."""
        since = self.since if phase == self.phase else now.wall
        return replace(self, phase=phase, since=since, detail=detail)


Next = tuple[State, tuple[Action, ...]]


def begin(now: Moment, last_failure: Failure | None) -> Next:
    """The first state of a run; ``last_failure`` is what the run before has left."""
    return State("preparing", now.wall, last_failure=last_failure), (Prepare(),)


def step(state: State, event: Event, now: Moment) -> Next:
    """What follows from ``event``; an event that comes too late changes nothing."""
    if isinstance(event, StopAsked):
        if state.phase == "stopping":
            return state, ()
        stopping = replace(state, last_failure=None).to("stopping", "asked to stop", now)
        return stopping, (Clear(gently=True),)
    if isinstance(event, Cleared):
        return _cleared(state, event)
    if state.phase in ("preparing", "waiting"):
        return _before_start(state, event, now)
    if state.phase in ("starting", "serving"):
        return _after_start(state, event, now)
    return state, ()


def _before_start(state: State, event: Event, now: Moment) -> Next:
    match event:
        case Step(detail) if state.phase == "preparing":
            return replace(state, detail=detail), ()
        case Known(release, rank):
            return replace(state, release=release, rank=rank), ()
        case Missing(detail):
            return state.to("waiting", detail, now), (Prepare(LOOK_AGAIN),)
        case Prepared():
            started = replace(state, prepared=event, engine_started=now)
            started = started.to("starting", "engine starts", now)
            asks = (Ask(event, ASK_AGAIN),) if state.rank == 0 else ()
            return started, (Start(event.argv), *asks)
    return state, ()


def _after_start(state: State, event: Event, now: Moment) -> Next:
    match event:
        case Exited(code):
            return _failed(state, code, f"engine exited with code {code}", now)
        case Completed() if state.phase == "starting":
            return state.to("serving", "first completion answered", now), ()
        case NotYet(detail) if state.phase == "starting" and state.prepared:
            waiting = state.to("starting", f"no completion yet: {detail}", now)
            return waiting, (Ask(state.prepared, ASK_AGAIN),)
        case Tick() if _is_overdue(state, now):
            return _failed(state, CODE_TIMEOUT, f"no first completion; {state.detail}", now)
    return state, ()


def _is_overdue(state: State, now: Moment) -> bool:
    """Workers have no limit of their own: they can't know whether the gang serves."""
    if state.phase != "starting" or state.rank != 0 or not state.prepared:
        return False
    started = state.engine_started or now
    return now.steady - started.steady > state.prepared.start_timeout


def _failed(state: State, code: int, what: str, now: Moment) -> Next:
    seconds = now.steady - (state.engine_started or now).steady
    detail = f"{what}, {seconds:.0f} s after its start, while {state.phase}"
    failure = Failure(now.wall, code, state.release or "", detail)
    failed = replace(state, last_failure=failure).to("failed", detail, now)
    return failed, (Clear(gently=False),)


def _cleared(state: State, event: Cleared) -> Next:
    if state.phase == "stopping":
        return state, (Leave(0),)
    if state.phase != "failed" or state.last_failure is None:
        return state, ()
    detail = "; ".join(filter(None, (state.detail, event.detail)))
    failure = replace(state.last_failure, detail=detail)
    return replace(state, detail=detail, last_failure=failure), (Leave(1),)
