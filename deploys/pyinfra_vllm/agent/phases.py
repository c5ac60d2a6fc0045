"""The phases of one run of the agent as a pure machine: state and event in, state and actions out.

A run goes preparing → (waiting →) starting → serving, and ends failed or stopping. What
the ranks agree on is the business of :mod:`tether`; here it meets the node: jobs, the
engine's process, and the words for people.
"""

from __future__ import annotations

from dataclasses import replace

from . import endings, pace, tether, tether_events, vitals
from .actions import (
    Action,
    Ask,
    Launch,
    Listen,
    Prepare,
    Tidy,
    Watch,
)
from .events import (
    Cleared,
    Completed,
    Event,
    Exited,
    Missing,
    Moment,
    NotYet,
    Prepared,
    Quiet,
    Sample,
    Seen,
    Step,
    StopAsked,
    Tick,
    Tidied,
    Wished,
)
from .naming import missing
from .state import Next, State
from .status import Failure
from .tether import Tether
from .vitals import Vitals

LOOK_AGAIN = pace.seconds(3.0)
"""Seconds between two looks at a precondition that is missing."""
RECHECK = pace.seconds(10.0)
"""Seconds between two looks while others are waited for."""
LISTEN_AGAIN = pace.seconds(20.0)
"""Seconds between two looks for the engine's last line."""
ASK_AGAIN = pace.seconds(1.0)
"""Seconds between two questions for the first completion."""


def begin(
    tethered: Tether, names: tuple[str, ...], now: Moment, last_failure: Failure | None
) -> Next:
    """The first state of a run; ``last_failure`` is what the run before has left."""
    state = State("preparing", now.wall, tethered, names, last_failure=last_failure)
    return state, (Tidy(),)


def step(state: State, event: Event, now: Moment) -> Next:
    """What follows from ``event``; an event that comes too late changes nothing."""
    if isinstance(event, StopAsked):
        return endings.stop(state, now)
    if isinstance(event, Cleared):
        return endings.cleared(state, event)
    if state.tether.stage == "ending":
        return state, ()
    state, event_of_tether, actions = _noted(state, event, now)
    if event_of_tether is None:
        return _shown(state, now), actions
    return _tethered(state, event_of_tether, actions, now)


def _noted(
    state: State, event: Event, now: Moment
) -> tuple[State, tether_events.Event | None, tuple[Action, ...]]:
    """What an event means here, what it means to the tether, and what is to be done again."""
    match event:
        case Tick(trouble):
            over = _overdue(state, now)
            return replace(state, trouble=trouble), over, ()
        case Step(detail):
            return replace(state, doing=detail), None, ()
        case Wished(release, hold):
            wish = tether_events.Wish(release, hold.text if hold else "", event.note)
            return replace(state, hold=hold, wished=event), wish, ()
        case Tidied(what):
            state = replace(state, doing=what)
            if what:
                return state, None, (Tidy(LOOK_AGAIN),)
            return state, tether_events.Clean(), ()
        case Missing(release, detail, absent):
            again = _again(state, release, LOOK_AGAIN)
            return state, tether_events.Lacking(release, detail, absent), again
        case Prepared(release):
            again = _again(state, release, RECHECK)
            if state.tether.is_head and event.size > len(state.names):
                # They have been told since this agent began: the next one knows them.
                return state, tether_events.Over(None, "the gang has more ranks now"), ()
            return replace(state, prepared=event), tether_events.Ready(release, event.size), again
        case tether_events.Joined() | tether_events.Heard() | tether_events.Lost():
            return state, event, ()
    return _after_start(state, event, now)


def _again(state: State, release: str, delay: float) -> tuple[Action, ...]:
    is_asked = state.tether.stage == "assembling" and release == state.tether.wanted
    return (Prepare(release, delay),) if is_asked else ()


def _after_start(
    state: State, event: Event, now: Moment
) -> tuple[State, tether_events.Event | None, tuple[Action, ...]]:
    prepared = state.prepared
    if state.tether.stage != "running" or prepared is None:
        return state, None, ()
    match event:
        case Exited(code):
            seconds = now.steady - (state.engine_started or now).steady
            text = f"engine exited with code {code}, {seconds:.0f} s after its start"
            return state, tether_events.Over(code, f"{text}, while {state.phase}"), ()
        case Seen(problem) if problem:
            return state, tether_events.Over(None, problem), ()
        case Seen():
            return _ready(replace(state, seen=True, doing="engine starts"), prepared, now)
        case Completed() if not state.tether.served:
            return _ready(replace(state, answered=True), prepared, now)
        case NotYet(detail) if not state.tether.served:
            state = replace(state, doing=f"no completion yet: {detail}")
            return state, None, (Ask(prepared, ASK_AGAIN),)
        case Quiet(quiet) if not state.tether.served:
            talked_at = None if quiet is None else now.steady - quiet
            return replace(state, talked_at=talked_at), None, (Listen(LISTEN_AGAIN),)
        case Sample() if state.vitals:
            seen = vitals.judge(state.vitals, event, now.steady, prepared.patience)
            over = tether_events.Over(None, seen.dead) if seen.dead else None
            delay = 0.0 if seen.press else vitals.INTERVAL
            watch = Watch(prepared, seen.press, delay)
            return replace(state, vitals=seen), over, () if over else (watch,)
    return state, None, ()


def _ready(
    state: State, prepared: Prepared, now: Moment
) -> tuple[State, tether_events.Event | None, tuple[Action, ...]]:
    """The head serves once its model was seen from inside and a completion was answered."""
    if not (state.seen and state.answered):
        return state, None, ()
    watch = Watch(prepared, press=False, delay=vitals.INTERVAL)
    return replace(state, vitals=Vitals(now.steady)), tether_events.Served(), (watch,)


def _overdue(state: State, now: Moment) -> tether_events.Event | None:
    """The head's limit for the first completion. Workers have none of their own."""
    if state.phase != "starting" or not state.tether.is_head or not state.prepared:
        return None
    if state.wished.on_trial:
        return None
    seconds = now.steady - (state.engine_started or now).steady
    if seconds <= state.prepared.start_timeout:
        return None
    return tether_events.Over(None, f"no first completion after {seconds:.0f} s: {state.detail}")


def _tethered(
    state: State, event: tether_events.Event, actions: tuple[Action, ...], now: Moment
) -> Next:
    after, wanted = tether.step(state.tether, event)
    state = replace(state, tether=after)
    for action in wanted:
        if isinstance(action, tether_events.Prepare):
            actions = (Prepare(action.release),)
            state = replace(state, doing="looks at the preconditions")
        elif (prepared := state.prepared) is not None:
            state = replace(state, engine_started=now, doing="engine starts")
            asks = (Ask(prepared, ASK_AGAIN), Listen(LISTEN_AGAIN)) if after.is_head else ()
            actions = (Launch(prepared, action.start), *asks)
    if after.stage == "ending":
        return endings.failed(state, now)
    return _shown(state, now), actions


def _shown(state: State, now: Moment) -> State:
    """The phase that follows from the tether, in words."""
    tethered = state.tether
    if tethered.stage == "running":
        if tethered.served:
            said = ("first completion answered", state.wished.note)
            return state.to("serving", "; ".join(filter(None, said)), now)
        return state.to("starting", state.doing, now)
    if tethered.stage == "clearing":
        return state.to("waiting" if state.phase == "waiting" else "preparing", state.doing, now)
    if state.hold is not None and tethered.is_head:
        return state.to(state.hold.phase, state.hold.text, now)
    what = missing(tethered, state.names, state.trouble)
    if what:
        return state.to("waiting", what, now)
    return state.to("preparing", state.doing, now)
