"""The phases of a run: state and event in, state and actions out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyinfra_vllm.agent import phases
from pyinfra_vllm.agent.events import (
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
    heard,
)
from pyinfra_vllm.agent.phases import State
from pyinfra_vllm.agent.status import Failure

_PREPARED = Prepared(("docker", "run"), ("127.0.0.1", 8000, "m"), None, 100.0)
_OLD = Failure(1.0, 9, "old", "died")


def _at(seconds: float) -> Moment:
    return Moment(1000.0 + seconds, seconds)


def _after(*events: Event, rank: int = 0) -> tuple[State, tuple[Action, ...]]:
    """The state after events a second apart, and the actions of the last one."""
    state, actions = phases.begin(_at(0), _OLD)
    state = replace(state, rank=rank, release="r")
    for second, event in enumerate(events, 1):
        state, actions = phases.step(state, event, _at(second))
    return state, actions


def test_run_begins_with_preparing_and_remembers_the_last_failure() -> None:
    state, actions = phases.begin(_at(0), _OLD)
    assert (state.phase, state.last_failure, actions) == ("preparing", _OLD, (Prepare(),))


def test_what_is_prepared_now_is_said() -> None:
    state, actions = _after(Step("looks for the image"))
    assert (state.phase, state.detail, actions) == ("preparing", "looks for the image", ())


def test_release_and_rank_are_shown_as_soon_as_they_are_known() -> None:
    state, _ = _after(Known("r2", 3))
    assert (state.release, state.rank) == ("r2", 3)


def test_missing_precondition_is_waited_for_without_limit_and_counts_as_no_failure() -> None:
    state, actions = _after(*[Missing(f"docker {n}") for n in range(1000)])
    assert (state.phase, state.detail, state.since) == ("waiting", "docker 999", 1001.0)
    assert actions == (Prepare(phases.LOOK_AGAIN),)
    assert state.last_failure == _OLD


def test_head_starts_the_engine_and_asks_for_a_completion() -> None:
    state, actions = _after(Missing("nas"), _PREPARED)
    assert (state.phase, state.engine_started) == ("starting", _at(2))
    assert actions == (Start(("docker", "run")), Ask(_PREPARED, phases.ASK_AGAIN))


def test_worker_starts_the_engine_and_asks_nobody() -> None:
    _, actions = _after(_PREPARED, rank=1)
    assert actions == (Start(("docker", "run")),)


def test_first_completion_makes_it_serving() -> None:
    state, actions = _after(_PREPARED, NotYet("refused"), Completed())
    assert (state.phase, state.since, actions) == ("serving", 1003.0, ())


def test_no_completion_yet_asks_again_and_says_why() -> None:
    state, actions = _after(_PREPARED, NotYet("connection refused"))
    assert state.detail == "no completion yet: connection refused"
    assert actions == (Ask(_PREPARED, phases.ASK_AGAIN),)


@pytest.mark.parametrize("code", [0, 1, 137])
@pytest.mark.parametrize("before", [(), (Completed(),)])
def test_any_exit_of_the_engine_fails_the_run(code: int, before: tuple[Event, ...]) -> None:
    state, actions = _after(_PREPARED, *before, Exited(code))
    assert (state.phase, actions) == ("failed", (Clear(gently=False),))
    assert state.last_failure is not None
    assert (state.last_failure.code, state.last_failure.release) == (code, "r")
    state, actions = phases.step(state, Cleared("memory ran out"), _at(9))
    assert actions == (Leave(1),)
    assert state.last_failure is not None
    assert state.last_failure.detail.endswith("memory ran out")


def test_head_without_a_completion_in_time_fails() -> None:
    starting, _ = _after(_PREPARED, NotYet("refused"))
    assert phases.step(starting, Tick(), _at(101))[0].phase == "starting"
    state, actions = phases.step(starting, Tick(), _at(102))
    assert (state.phase, actions) == ("failed", (Clear(gently=False),))
    assert state.last_failure is not None and state.last_failure.code == 124


def test_clock_that_jumps_an_hour_is_no_timeout() -> None:
    starting, _ = _after(_PREPARED)
    state, _ = phases.step(starting, Tick(), Moment(wall=1000.0 + 3600, steady=3.0))
    assert state.phase == "starting"


def test_worker_and_serving_head_have_no_start_timeout() -> None:
    for state in (_after(_PREPARED, rank=1)[0], _after(_PREPARED, Completed())[0]):
        assert phases.step(state, Tick(), _at(9999)) == (state, ())


@pytest.mark.parametrize(
    "events",
    [(), (Missing("x"),), (_PREPARED,), (_PREPARED, Completed()), (_PREPARED, Exited(1))],
)
def test_stop_is_followed_from_every_phase_and_forgets_the_failure(
    events: tuple[Event, ...],
) -> None:
    state, actions = _after(*events, StopAsked())
    assert (state.phase, actions, state.last_failure) == ("stopping", (Clear(gently=True),), None)
    assert phases.step(state, StopAsked(), _at(50)) == (state, ())
    assert phases.step(state, Cleared(""), _at(50))[1] == (Leave(0),)


@pytest.mark.parametrize("late", [_PREPARED, Completed(), NotYet("x"), Missing("x"), Exited(0)])
def test_event_that_comes_after_the_end_changes_nothing(late: Event) -> None:
    for end in (StopAsked(), Exited(3)):
        state, _ = _after(_PREPARED, end)
        assert phases.step(state, late, _at(60)) == (state, ())


def test_words_of_a_job_become_events() -> None:
    start = {
        "start": ["docker", "run"],
        "api": ["127.0.0.1", 8000, "m"],
        "api_key": None,
        "start_timeout": 100,
    }
    assert heard(start) == _PREPARED
    assert heard({"unmet": "x"}) == Missing("x")
    assert heard({"completed": True, "detail": None}) == Completed()
    assert heard({"completed": False, "detail": "x"}) == NotYet("x")
    assert heard({"cleared": ""}) == Cleared("")
    assert heard({"note": "x"}) is None
