"""The phases of a run: state and event in, state and actions out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyinfra_vllm.agent import phases, tether, tether_events, vitals
from pyinfra_vllm.agent.actions import (
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
from pyinfra_vllm.agent.events import (
    Cleared,
    Completed,
    Event,
    Exited,
    Hold,
    Missing,
    Moment,
    NotYet,
    Prepared,
    Quiet,
    Seen,
    Step,
    StopAsked,
    Tick,
    Tidied,
    Wished,
    heard,
)
from pyinfra_vllm.agent.said import ABSENT, Said, Start
from pyinfra_vllm.agent.state import State
from pyinfra_vllm.agent.status import Failure

_R = "r" * 64
_START = Start(7, "00")
_ADDRESS = ("127.0.0.1", 8000, "m")
_PREPARED = Prepared(_R, 1, ("docker", "run"), _ADDRESS, None, 100.0, 0.0)
_TWO = replace(_PREPARED, size=2)
_OLD = Failure(1.0, 9, "old", "died")
_NAMES = ("rank 0 (a)", "rank 1 (b)")
_UP = (Tidied(), Wished(_R, None))
_SERVING = (*_UP, _PREPARED, Seen(""), Completed())


def _at(seconds: float) -> Moment:
    return Moment(1000.0 + seconds, seconds)


def _after(*events: Event, rank: int = 0) -> tuple[State, tuple[Action, ...]]:
    """The state after events a second apart, and the actions of the last one."""
    tethered = tether.worker(rank) if rank else tether.head(2, _START)
    state, actions = phases.begin(tethered, _NAMES, _at(0), _OLD)
    for second, event in enumerate(events, 1):
        state, actions = phases.step(state, event, _at(second))
    return state, actions


def test_run_begins_with_tidying_and_remembers_the_last_failure() -> None:
    state, actions = _after()
    assert (state.phase, state.last_failure, actions) == ("preparing", _OLD, (Tidy(),))


def test_nothing_is_prepared_while_an_old_engine_may_be_there() -> None:
    state, actions = _after(Wished(_R, None), Tidied("docker doesn't answer"))
    assert actions == (Tidy(phases.LOOK_AGAIN),)
    assert "docker doesn't answer" in state.detail
    _, actions = _after(Wished(_R, None), Tidied())
    assert actions == (Prepare(_R),)


def test_missing_precondition_is_waited_for_without_limit_and_counts_as_no_failure() -> None:
    state, actions = _after(*_UP, *[Missing(_R, f"docker {n}") for n in range(1000)])
    assert (state.phase, state.since) == ("waiting", 1001.0)
    assert "docker 999" in state.detail
    assert actions == (Prepare(_R, phases.LOOK_AGAIN),)
    assert state.last_failure == _OLD


def test_head_alone_starts_the_engine_and_asks_for_a_completion() -> None:
    state, actions = _after(*_UP, Missing(_R, "nas"), _PREPARED)
    assert (state.phase, state.engine_started) == ("starting", _at(4))
    asks = (Ask(_PREPARED, phases.ASK_AGAIN), Listen(phases.LISTEN_AGAIN))
    assert actions == (Launch(_PREPARED, _START), *asks)


def test_a_switch_says_why_and_a_trial_has_another_limit_than_the_release() -> None:
    late = Tick()
    state, _ = _after(*_UP, _PREPARED)
    assert phases.step(state, late, _at(200))[0].phase == "failed"
    state, _ = _after(Tidied(), Wished(_R, None, on_trial=True), _PREPARED)
    assert phases.step(state, late, _at(200))[0].phase == "starting"
    state, _ = phases.step(state, Wished("s" * 64, None, note="rolled back: no luck"), _at(201))
    assert state.phase == "stopping" and state.last_failure == _OLD
    assert state.detail == "switch to ssssssssssss: rolled back: no luck"


def test_head_listens_to_its_engine_until_it_serves() -> None:
    state, actions = _after(*_UP, _PREPARED, Quiet(3.0))
    assert (state.talked_at, actions) == (1.0, (Listen(phases.LISTEN_AGAIN),))
    state, actions = phases.step(state, Quiet(None), _at(9))
    assert (state.talked_at, actions) == (None, (Listen(phases.LISTEN_AGAIN),))
    for event in (Completed(), Seen("")):
        state, _ = phases.step(state, event, _at(10))
    assert phases.step(state, Quiet(1.0), _at(11))[1] == ()


def test_a_part_of_the_release_that_is_absent_is_told_to_the_head() -> None:
    wanted = (tether_events.Joined(0), tether_events.Heard(0, Said("want", _R)))
    state, _ = _after(Tidied(), *wanted, Missing(_R, "no image", absent=True), rank=1)
    assert tether.says(state.tether, 0) == Said("lack", _R, None, ABSENT, "no image")
    state, _ = _after(Tidied(), *wanted, Missing(_R, "the NAS is away"), rank=1)
    assert tether.says(state.tether, 0).code == 0


def test_head_of_two_waits_for_the_other_by_name() -> None:
    state, actions = _after(*_UP, _TWO)
    assert (state.phase, state.detail) == ("waiting", "rank 1 (b) is not connected")
    assert actions == (Prepare(_R, phases.RECHECK),)
    state, actions = _after(
        *_UP, _TWO, tether_events.Joined(1), tether_events.Heard(1, Said("have", _R))
    )
    assert actions[0] == Launch(_TWO, _START)


def test_head_that_was_told_of_more_ranks_since_it_began_begins_anew() -> None:
    state, _ = _after(*_UP, replace(_PREPARED, size=3))
    assert state.tether.stage == "ending"
    assert state.tether.end is not None and state.tether.end.code is None
    assert state.tether.end.text == "the gang has more ranks now"


def test_worker_starts_when_the_head_opens_and_asks_nobody() -> None:
    wanted = (tether_events.Joined(0), tether_events.Heard(0, Said("want", _R)), _TWO)
    state, _ = _after(Tidied(), *wanted, rank=1)
    assert state.phase == "waiting" and "rank 0 (a), the head, opens no start yet" in state.detail
    opened = tether_events.Heard(0, Said("open", _R, _START))
    state, actions = _after(Tidied(), *wanted, opened, rank=1)
    assert (state.phase, actions) == ("starting", (Launch(_TWO, _START),))
    served = tether_events.Heard(0, Said("serve", _R, _START))
    state, _ = _after(Tidied(), *wanted, opened, served, rank=1)
    assert state.phase == "serving"


def test_worker_without_a_head_says_why() -> None:
    state, _ = _after(Tidied(), Tick("Connection refused"), rank=1)
    assert (state.phase, state.detail) == (
        "waiting",
        "rank 0 (a), the head, is not reached: Connection refused",
    )


def test_first_completion_makes_it_serving_and_watched() -> None:
    state, actions = _after(*_UP, _PREPARED, Seen(""), NotYet("refused"), Completed())
    assert (state.phase, state.last_failure) == ("serving", _OLD)
    assert actions == (Watch(_PREPARED, False, vitals.INTERVAL),)


def test_head_serves_only_when_its_model_was_seen_from_inside_the_container() -> None:
    state, actions = _after(*_UP, _PREPARED, Completed())
    assert (state.phase, actions) == ("starting", ())
    state, actions = phases.step(state, Seen(""), _at(5))
    assert state.phase == "serving"
    assert actions == (Watch(_PREPARED, False, vitals.INTERVAL),)


@pytest.mark.parametrize("rank", [0, 1])
def test_model_that_does_not_open_inside_the_container_ends_the_start(rank: int) -> None:
    begun = (Tidied(), Wished(_R, None)) if rank == 0 else (Tidied(),)
    opened = (_PREPARED,)
    if rank:
        want, begin = Said("want", _R), Said("open", _R, _START)
        opened = (tether_events.Heard(0, want), _TWO, tether_events.Heard(0, begin))  # type: ignore[assignment]
    state, actions = _after(*begun, *opened, Seen("/model/config.json: no such file"), rank=rank)
    assert (state.phase, state.detail) == ("failed", "/model/config.json: no such file")
    assert actions == (Clear(gently=False),)
    assert state.last_failure is not None and state.last_failure.code == 124


def test_head_asks_again_and_says_what_it_got() -> None:
    state, actions = _after(*_UP, _PREPARED, NotYet("refused"))
    assert (state.detail, actions) == (
        "no completion yet: refused",
        (Ask(_PREPARED, phases.ASK_AGAIN),),
    )


@pytest.mark.parametrize("code", [0, 1, 137])
def test_exit_of_the_engine_is_a_failure_with_any_code(code: int) -> None:
    state, actions = _after(*_SERVING, Exited(code))
    assert state.phase == "failed" and actions == (Clear(gently=False),)
    assert state.last_failure == Failure(1006.0, code, _R, state.detail)
    _, actions = phases.step(state, Cleared("memory ran out"), _at(9))
    assert actions == (Leave(1),)


def test_death_of_another_rank_is_no_failure_of_this_one() -> None:
    joined = (tether_events.Joined(1), tether_events.Heard(1, Said("have", _R)))
    died = tether_events.Heard(1, Said("end", _R, _START, 3, "engine exited with code 3"))
    state, actions = _after(*_UP, _TWO, *joined, died)
    assert (state.phase, state.last_failure) == ("failed", _OLD)
    assert state.detail == "rank 1 (b): engine exited with code 3"
    assert actions == (Clear(gently=False),)


def test_head_without_a_completion_in_time_fails() -> None:
    state, _ = _after(*_UP, _PREPARED)
    state, actions = phases.step(state, Tick(), _at(104))
    assert state.phase == "failed" and "no first completion" in state.detail
    assert actions == (Clear(gently=False),)


@pytest.mark.parametrize("events", [(), _UP, (*_UP, _PREPARED), _SERVING])
def test_stop_drains_and_leaves_with_0(events: tuple[Event, ...]) -> None:
    state, actions = _after(*events, StopAsked())
    assert (state.phase, actions) == ("stopping", (Clear(gently=True),))
    assert phases.step(state, StopAsked(), _at(50))[1] == ()
    assert phases.step(state, Cleared(""), _at(60))[1] == (Leave(0),)
    assert state.last_failure is None


def test_pause_drains_and_a_switch_kills_and_neither_is_a_failure() -> None:
    paused = Wished(_R, Hold("paused", "paused by me"))
    state, actions = _after(*_SERVING, paused)
    assert (state.phase, actions) == ("stopping", (Clear(gently=True),))
    state, actions = _after(*_SERVING, Wished("s" * 64, None))
    assert (state.phase, actions) == ("stopping", (Clear(gently=False),))
    assert state.last_failure == _OLD


def test_hold_is_shown_as_what_it_is() -> None:
    state, _ = _after(Tidied(), Wished(_R, Hold("failed", "gave up")), _PREPARED)
    assert (state.phase, state.detail) == ("failed", "gave up")


def test_events_that_come_too_late_change_nothing() -> None:
    state, _ = _after(*_UP, _PREPARED, Exited(1))
    for event in (Completed(), NotYet("x"), Missing(_R, "x"), Step("x"), Exited(2), _PREPARED):
        assert phases.step(state, event, _at(99)) == (state, ())


def test_words_of_jobs_are_understood() -> None:
    assert heard({"step": "x"}) == Step("x")
    assert heard({"unmet": "x", "release": _R}) == Missing(_R, "x")
    assert heard({"tidied": ""}) == Tidied()
    assert heard({"completed": True, "detail": None}) == Completed()
    assert heard({"seen": "x"}) == Seen("x")
    assert heard({"cleared": "x"}) == Cleared("x")
    assert heard({"note": "x"}) is None
