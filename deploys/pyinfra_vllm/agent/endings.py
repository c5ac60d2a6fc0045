"""How a run ends: by an operator, by a failure, and when all is cleared. Pure."""

from __future__ import annotations

from dataclasses import replace

from . import tether, tether_events
from .actions import Clear, Leave
from .events import (
    Cleared,
    Moment,
)
from .state import CODE_TIMEOUT, Next, State
from .status import Failure, Phase

_ASKED = ("an operator stopped it", "switch to ", "paused")


def was_asked(text: str) -> bool:
    """Whether a start that ended for this reason was asked to: it has not failed."""
    return text.startswith(_ASKED)


def stop(state: State, now: Moment) -> Next:
    if state.stop_asked:
        return state, ()
    ended, _ = tether.step(state.tether, tether_events.Over(None, "an operator stopped it"))
    state = replace(state, tether=ended, stop_asked=True, last_failure=None)
    return state.to("stopping", "asked to stop", now), (Clear(gently=True),)


def failed(state: State, now: Moment) -> Next:
    end = state.tether.end
    assert end is not None
    who = "" if end.rank == state.tether.rank else f"{_name(state, end.rank)}: "
    detail = f"{who}{end.text}"
    if end.rank == state.tether.rank and state.engine_started and not _is_asked(state):
        code = CODE_TIMEOUT if end.code is None else end.code
        failure = Failure(now.wall, code, state.release or "", detail)
        state = replace(state, last_failure=failure)
    phase: Phase = "stopping" if _is_asked(state) else "failed"
    return state.to(phase, detail, now), (Clear(gently=_is_pause(state)),)


def _name(state: State, rank: int) -> str:
    return state.names[rank] if rank < len(state.names) else f"rank {rank}"


def _is_asked(state: State) -> bool:
    """Whether an operator asked for the end: by a pause or a switch."""
    end = state.tether.end
    return _is_pause(state) or (end is not None and end.text.startswith("switch to "))


def _is_pause(state: State) -> bool:
    return state.hold is not None and state.hold.phase == "paused"


def cleared(state: State, event: Cleared) -> Next:
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
