"""When the head waits before a start, and when it stops trying."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyinfra_vllm.agent import history
from pyinfra_vllm.agent.history import Book, Death, History
from pyinfra_vllm.agent.trial import Trial

_NOW = 1_000_000.0


def _with_deaths(count: int, switch: int = 1) -> History:
    known = History()
    for number in range(count):
        death = Death(_NOW + number, "r", switch, f"death {number}")
        known = known.opened().collapsed(_NOW + number, death)
    return known


def test_five_deaths_in_two_hours_are_enough() -> None:
    assert not _with_deaths(4).gave_up("r", 1, _NOW + 10)
    text = _with_deaths(5).gave_up("r", 1, _NOW + 10)
    assert "gave up: 5 engines died" in text and "death 4" in text
    assert not _with_deaths(5).gave_up("r", 1, _NOW + history.WINDOW + 10)


def test_another_release_a_switch_and_a_completion_clear_them() -> None:
    known = _with_deaths(5)
    assert not known.gave_up("other", 1, _NOW)
    assert not known.gave_up("r", 2, _NOW)
    assert not known.serving("r").gave_up("r", 1, _NOW)


def test_collapses_in_a_row_cost_longer_and_longer_waits_and_single_ones_none() -> None:
    known = History()
    waits = []
    for number in range(12):
        known = known.collapsed(_NOW + number, None)
        waits.append(max(0.0, known.next_start(_NOW + number) - _NOW - number))
    assert waits[:5] == [0.0, 0.0, 10.0, 20.0, 40.0]
    assert waits[-1] == 300.0
    assert known.next_start(_NOW + 3600) == 0.0


def test_a_new_wish_waits_for_no_back_off_and_nothing_is_told_of_it_yet() -> None:
    known = _with_deaths(5).wished(1).telling("asked")
    assert known.wished(1) == known
    assert known.wished(2).told == () and known.wished(2).next_start(_NOW + 5) == 0.0


def test_a_record_of_an_older_agent_is_read(tmp_path: Path) -> None:
    old = {"schema": 1, "number": 7, "deaths": [], "collapses": [_NOW], "broken": True}
    (tmp_path / "starts.json").write_text(json.dumps(old))
    assert Book.open(tmp_path / "starts.json").history == History(7, (), (_NOW,), True)


def test_only_the_end_of_a_start_that_served_begins_time_without_service() -> None:
    known = History().down(_NOW)
    assert known.down_since is None
    known = known.serving("r").down(_NOW).down(_NOW + 5)
    assert (known.down_since, known.passed) == (_NOW, "r")
    assert known.serving("s").down_since is None


def test_book_survives_and_a_broken_one_is_empty(tmp_path: Path) -> None:
    book = Book.open(tmp_path / "starts.json")
    book.keep(_with_deaths(2))
    assert Book.open(tmp_path / "starts.json").history == _with_deaths(2)
    (tmp_path / "starts.json").write_text("{")
    assert Book.open(tmp_path / "starts.json").history == History()
    known = replace(
        _with_deaths(1).serving("r").down(_NOW).wished(3).telling("asked"),
        trial=Trial("s", 3, 2.5, ("x",), "over"),
    )
    book.keep(known)
    assert Book.open(tmp_path / "starts.json").history == known
    lost = Book.open(tmp_path / "missing" / "starts.json")
    lost.keep(History(3))
    assert lost.trouble and lost.history.number == 3


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "[" * 100_000,
        '{"number": Infinity, "deaths": [], "collapses": [], "broken": false}',
        '{"number": 1, "deaths": [{"at": "x"}], "collapses": [], "broken": false}',
        '{"number": 1, "deaths": [5], "collapses": [], "broken": false}',
        '{"number": 1, "deaths": [], "collapses": ["x"], "broken": false}',
    ],
)
def test_a_record_that_somebody_wrote_by_hand_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "starts.json").write_text(text)
    assert Book.open(tmp_path / "starts.json").history == History()
