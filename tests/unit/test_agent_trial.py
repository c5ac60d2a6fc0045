"""When a switch has failed, and what the head then wishes itself."""

from __future__ import annotations

import itertools

import pytest

from pyinfra_vllm.agent import trial
from pyinfra_vllm.agent.trial import Seen, Terms, Trial, failure, lost_lease, of, wish_to_go_back

NEW, OLD, OLDER = "b" * 64, "a" * 64, "c" * 64
TERMS = Terms(NEW, 4, OLD, seconds=600)
BEGUN = Trial(NEW, 4)


def test_a_release_that_is_no_news_is_not_on_trial() -> None:
    assert of(TERMS, OLD, None) == BEGUN
    assert of(TERMS, NEW, None) is None
    assert of(None, OLD, None) is None
    assert of(Terms(NEW, 4, OLD, seconds=0), OLD, None) is None


def test_every_wish_has_a_trial_of_its_own() -> None:
    going = BEGUN.counts(30).died("x")
    assert of(TERMS, OLD, going) == going
    for terms in (Terms(NEW, 5, OLD, 600), Terms(OLDER, 4, OLD, 600)):
        assert of(terms, OLD, going) == Trial(terms.release, terms.switch)


def test_every_combination_of_time_deaths_progress_and_absence() -> None:
    """One table of all: each reason alone is enough, and progress excuses only time."""
    times = (0.0, 599.9, 600.0, 1199.9, 1200.0, 5000.0)
    deaths = ((), ("x",), ("x", "y"))
    quiets = (None, 0.0, trial.QUIET - 1, trial.QUIET, 9999.0)
    for at, died, quiet, absent in itertools.product(times, deaths, quiets, ("", "rank 2: none")):
        said = failure(TERMS, Trial(NEW, 4, at, died), Seen(absent, quiet))
        progresses = quiet is not None and quiet < trial.QUIET and at < 1200
        expected = absent or len(died) >= 2 or (at >= 600 and not progresses)
        assert bool(said) == bool(expected), (at, died, quiet, absent, said)


@pytest.mark.parametrize(
    ("known", "seen", "words"),
    [
        (BEGUN, Seen("rank 2 (n2): no image"), "a rank lacks the release: rank 2 (n2): no image"),
        (BEGUN.died("one").died("two"), Seen(), "2 engines died before a first completion"),
        (BEGUN.died("one").died("two"), Seen(), "the last: two"),
        (BEGUN.counts(601), Seen(), "no first completion in 601 s"),
        (Trial(NEW, 4, over="as before"), Seen(), "as before"),
    ],
)
def test_the_reason_is_said(known: Trial, seen: Seen, words: str) -> None:
    assert words in failure(TERMS, known, seen)


def test_a_clock_that_runs_backwards_gives_no_time_back() -> None:
    assert BEGUN.counts(5).counts(-3).counted == 5


def test_a_lease_ends_when_nobody_was_heard_of() -> None:
    lent = Terms(NEW, 4, OLD, 600, lease=60)
    assert not lost_lease(lent, Seen(unheard=60))
    assert "60 s" in lost_lease(lent, Seen(unheard=60.1))
    assert not lost_lease(TERMS, Seen(unheard=9999))
    assert not lost_lease(None, Seen(unheard=9999))


def test_going_back_takes_the_earlier_wish_from_the_stack() -> None:
    wanted = {"release": NEW, "previous": OLD, "earlier": [OLDER], "switch": 4, "trial": {}}
    back = wish_to_go_back(wanted, "no luck", 12.0)
    assert (back["release"], back["previous"], back["earlier"]) == (OLD, OLDER, [])
    assert back["switch"] == 5 and "trial" not in back and "lease" not in back
    assert back["back"] == {"from": NEW, "switch": 4, "why": "no luck", "at": 12.0}


def test_going_back_from_a_wish_of_an_older_deploy_has_no_stack() -> None:
    back = wish_to_go_back({"release": NEW, "previous": OLD, "switch": 4}, "no luck", 12.0)
    assert (back["release"], back["previous"], back["earlier"]) == (OLD, None, [])
