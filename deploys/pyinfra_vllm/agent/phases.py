"""The phases of one run of the agent as a pure machine: state and event in, state and actions out.

A run goes preparing → (waiting →) starting → serving, and ends failed or stopping. What
the ranks agree on is the business of :mod:`tether`; here it meets the node: jobs, the
engine's process, and the words for people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import pace, tether, vitals
from .events import (
    Action,
    Ask,
    Clear,
    Cleared,
    Completed,
    Event,
    Exited,
    Hold,
    Launch,
    Leave,
    Missing,
    Moment,
    NotYet,
    Prepare,
    Prepared,
    Sample,
    Step,
    StopAsked,
    Tick,
    Tidied,
    Tidy,
    Watch,
    Wished,
)
from .naming import missing
from .status import Failure, Phase
from .tether import Tether
from .vitals import Vitals

LOOK_AGAIN = pace.seconds(3.0)
"""Seconds between two looks at a precondition that is missing."""
RECHECK = pace.seconds(10.0)
"""Seconds between two looks while others are waited for."""
ASK_AGAIN = pace.seconds(1.0)
"""Seconds between two questions for the first completion."""
CODE_TIMEOUT = 124
"""Code of a failure where no engine exited, as timeout(1) has it."""
CODE_DOCKER = 125
"""Exit code of docker's client when docker, not the engine, failed."""


@dataclass(frozen=True)
class State:
    """Everything that decides what comes next. ``names``: of the nodes, by rank, for people."""

    phase: Phase
    since: float
    tether: Tether
    names: tuple[str, ...]
    detail: str = ""
    doing: str = ""
    hold: Hold | None = None
    prepared: Prepared | None = None
    engine_started: Moment | None = None
    last_failure: Failure | None = None
    stop_asked: bool = False
    trouble: str = ""
    vitals: Vitals | None = None

    @property
    def release(self) -> str | None:
        """The release that this rank is to serve, when it knows."""
        return self.tether.wanted or None

    def to(self, phase: Phase, detail: str, now: Moment) -> State:
        """This state in another phase; ``since`` moves only with the phase."""
        since = self.since if phase == self.phase else now.wall
        return replace(self, phase=phase, since=since, detail=detail)


Next = tuple[State, tuple[Action, ...]]


def begin(
    tethered: Tether, names: tuple[str, ...], now: Moment, last_failure: Failure | None
) -> Next:
    """The first state of a run; ``last_failure`` is what the run before has left."""
    state = State("preparing", now.wall, tethered, names, last_failure=last_failure)
    return state, (Tidy(),)


def step(state: State, event: Event, now: Moment) -> Next:
    """What follows from ``event``; an event that comes too late changes nothing."""
    if isinstance(event, StopAsked):
        return _stop(state, now)
    if isinstance(event, Cleared):
        return _cleared(state, event)
    if state.tether.stage == "ending":
        return state, ()
    state, event_of_tether, actions = _noted(state, event, now)
    if event_of_tether is None:
        return _shown(state, now), actions
    return _tethered(state, event_of_tether, actions, now)


def _noted(
    state: State, event: Event, now: Moment
) -> tuple[State, tether.Event | None, tuple[Action, ...]]:
    """What an event means here, what it means to the tether, and what is to be done again."""
    match event:
        case Tick(trouble):
            over = _overdue(state, now)
            return replace(state, trouble=trouble), over, ()
        case Step(detail):
            return replace(state, doing=detail), None, ()
        case Wished(release, hold):
            return replace(state, hold=hold), tether.Wish(release, hold.text if hold else ""), ()
        case Tidied(what):
            state = replace(state, doing=what)
            return (state, None, (Tidy(LOOK_AGAIN),)) if what else (state, tether.Clean(), ())
        case Missing(release, detail):
            again = _again(state, release, LOOK_AGAIN)
            return state, tether.Lacking(release, detail), again
        case Prepared(release):
            again = _again(state, release, RECHECK)
            return replace(state, prepared=event), tether.Ready(release, event.size), again
        case tether.Joined() | tether.Heard() | tether.Lost():
            return state, event, ()
    return _after_start(state, event, now)


def _again(state: State, release: str, delay: float) -> tuple[Action, ...]:
    is_asked = state.tether.stage == "assembling" and release == state.tether.wanted
    return (Prepare(release, delay),) if is_asked else ()


def _after_start(
    state: State, event: Event, now: Moment
) -> tuple[State, tether.Event | None, tuple[Action, ...]]:
    prepared = state.prepared
    if state.tether.stage != "running" or prepared is None:
        return state, None, ()
    match event:
        case Exited(code):
            seconds = now.steady - (state.engine_started or now).steady
            text = f"engine exited with code {code}, {seconds:.0f} s after its start"
            return state, tether.Over(code, f"{text}, while {state.phase}"), ()
        case Completed() if not state.tether.served:
            state = replace(state, vitals=Vitals(now.steady))
            watch = Watch(prepared, press=False, delay=vitals.INTERVAL)
            return state, tether.Served(), (watch,)
        case NotYet(detail) if not state.tether.served:
            state = replace(state, doing=f"no completion yet: {detail}")
            return state, None, (Ask(prepared, ASK_AGAIN),)
        case Sample() if state.vitals:
            seen = vitals.judge(state.vitals, event, now.steady, prepared.patience)
            over = tether.Over(None, seen.dead) if seen.dead else None
            delay = 0.0 if seen.press else vitals.INTERVAL
            watch = Watch(prepared, seen.press, delay)
            return replace(state, vitals=seen), over, () if over else (watch,)
    return state, None, ()


def _overdue(state: State, now: Moment) -> tether.Event | None:
    """The head's limit for the first completion. Workers have none of their own."""
    if state.phase != "starting" or not state.tether.is_head or not state.prepared:
        return None
    seconds = now.steady - (state.engine_started or now).steady
    if seconds <= state.prepared.start_timeout:
        return None
    return tether.Over(None, f"no first completion after {seconds:.0f} s: {state.detail}")


def _tethered(state: State, event: tether.Event, actions: tuple[Action, ...], now: Moment) -> Next:
    after, wanted = tether.step(state.tether, event)
    state = replace(state, tether=after)
    for action in wanted:
        if isinstance(action, tether.Prepare):
            actions = (Prepare(action.release),)
            state = replace(state, doing="looks at the preconditions")
        elif (prepared := state.prepared) is not None:
            state = replace(state, engine_started=now, doing="engine starts")
            asks = (Ask(prepared, ASK_AGAIN),) if after.is_head else ()
            actions = (Launch(prepared, action.start), *asks)
    if after.stage == "ending":
        return _failed(state, now)
    return _shown(state, now), actions


def _shown(state: State, now: Moment) -> State:
    """The phase that follows from the tether, in words."""
    tethered = state.tether
    if tethered.stage == "running":
        if tethered.served:
            return state.to("serving", "first completion answered", now)
        return state.to("starting", state.doing, now)
    if tethered.stage == "clearing":
        return state.to("waiting" if state.phase == "waiting" else "preparing", state.doing, now)
    if state.hold is not None and tethered.is_head:
        return state.to(state.hold.phase, state.hold.text, now)
    what = missing(tethered, state.names, state.trouble)
    if what:
        return state.to("waiting", what, now)
    return state.to("preparing", state.doing, now)


def _stop(state: State, now: Moment) -> Next:
    if state.stop_asked:
        return state, ()
    ended, _ = tether.step(state.tether, tether.Over(None, "an operator stopped it"))
    state = replace(state, tether=ended, stop_asked=True, last_failure=None)
    return state.to("stopping", "asked to stop", now), (Clear(gently=True),)


def _failed(state: State, now: Moment) -> Next:
    end = state.tether.end
    assert end is not None
    who = "" if end.rank == state.tether.rank else f"{state.names[end.rank]}: "
    detail = f"{who}{end.text}"
    if end.rank == state.tether.rank and state.engine_started and not _is_asked(state):
        code = CODE_TIMEOUT if end.code is None else end.code
        failure = Failure(now.wall, code, state.release or "", detail)
        state = replace(state, last_failure=failure)
    phase: Phase = "stopping" if _is_asked(state) else "failed"
    return state.to(phase, detail, now), (Clear(gently=_is_pause(state)),)


def _is_asked(state: State) -> bool:
    """Whether an operator asked for the end: by a pause or a switch."""
    end = state.tether.end
    return _is_pause(state) or (end is not None and end.text.startswith("switch to "))


def _is_pause(state: State) -> bool:
    return state.hold is not None and state.hold.phase == "paused"


def _cleared(state: State, event: Cleared) -> Next:
    if state.stop_asked:
        return state, (Leave(0),)
    if state.tether.stage != "ending":
        return state, ()
    detail = "; ".join(filter(None, (state.detail, event.detail)))
    state = replace(state, detail=detail)
    if state.last_failure is not None and state.phase == "failed" and event.detail:
        mine = state.tether.end is not None and state.tether.end.rank == state.tether.rank
        failure = replace(state.last_failure, detail=detail)
        state = replace(state, last_failure=failure if mine else state.last_failure)
    return state, (Leave(1),)
