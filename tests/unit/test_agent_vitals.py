"""Does the engine live? Long work is no death, silence with a failed completion is."""

from __future__ import annotations

from pyinfra_vllm.agent import vitals
from pyinfra_vllm.agent.events import Sample
from pyinfra_vllm.agent.probe import read_metrics
from pyinfra_vllm.agent.vitals import Vitals, judge

_LONG = vitals.PATIENCE
_IDLE = Sample("tokens 5", busy=False, answered=True, watts=20.0, detail="")
_STILL = Sample("tokens 5", busy=True, answered=None, watts=20.0, detail="")
_DEAD = Sample("tokens 5", busy=True, answered=False, watts=20.0, detail="timed out")


def test_prefill_that_moves_only_the_kv_gauge_is_alive() -> None:
    known = Vitals(0.0, "kv 0.1")
    for chunk in range(100):
        sample = Sample(f"kv 0.{chunk}", True, None, 45.0, "")
        known = judge(known, sample, chunk * _LONG / 2, 0.0)
    assert not known.dead and not known.press


def test_busy_silence_asks_for_a_completion_before_it_is_death() -> None:
    known = judge(Vitals(0.0, "tokens 5"), _STILL, _LONG - 1, 0.0)
    assert (known.press, known.dead) == (False, "")
    known = judge(known, _STILL, _LONG + 1, 0.0)
    assert (known.press, known.dead) == (True, "")
    assert judge(known, _DEAD, _LONG + 2, 0.0).dead.endswith("timed out")


def test_idle_engine_that_must_not_be_asked_lives_while_its_counters_can_be_read() -> None:
    idle = Sample("tokens 5", False, None, 20.0, "", excused=True)
    known = Vitals(0.0, "tokens 5")
    for hour in range(1, 9):
        known = judge(known, idle, hour * 3600.0, 0.0)
    assert not known.press and not known.dead


def test_failed_completion_alone_is_no_death() -> None:
    assert not judge(Vitals(0.0, "tokens 5"), _DEAD, _LONG - 1, 0.0).dead


def test_patience_is_the_engines_own_when_that_is_longer() -> None:
    assert not judge(Vitals(0.0, "tokens 5"), _DEAD, 2 * _LONG, 3 * _LONG).dead


def test_power_above_idle_extends_the_patience_twice_at_most() -> None:
    known = judge(Vitals(0.0), _IDLE, 0.0, 0.0)
    hot = Sample("tokens 5", True, False, 45.0, "timed out")
    for times in (1, 2):
        known = judge(known, hot, times * _LONG + 1, 0.0)
        assert (known.extensions, known.dead) == (times, "")
    assert judge(known, hot, 3 * _LONG + 1, 0.0).dead


def test_answer_makes_all_well_again() -> None:
    known = judge(Vitals(0.0, "tokens 5", extensions=2), _IDLE, 5 * _LONG, 0.0)
    assert (known.alive_at, known.extensions) == (5 * _LONG, 0)


def test_only_what_the_engine_moves_is_a_sign() -> None:
    text = """# HELP x
http_requests_total{handler="/health"} 7
vllm:num_requests_running{engine="0"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:prompt_tokens_created{engine="0"} 1.7e9
"""
    assert read_metrics(text) == ('vllm:kv_cache_usage_perc{engine="0"} 0.25', True)
