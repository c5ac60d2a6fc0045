"""The history of switches, one row for each thing that was asked for."""

from __future__ import annotations

from typing import Any

from pyinfra_vllm.gang_history import Row, table, told

A, B = "a" * 64, "b" * 64


def event(name: str, switch: int, release: str, **keys: Any) -> dict[str, Any]:
    return {"event": name, "at": 1000.0 + switch, "switch": switch, "release": release, **keys}


EVENTS = [
    event("asked", 1, A, recipe="r36", kind="deploy", by={"who": "me@here"}, image={"tag": "t"}),
    event("serving", 1, A, engine=70.0, without=None),
    event("asked", 2, B, recipe="r37", kind="deploy", by={"who": "me", "revision": "c0ffee"}),
    event("rolled back", 2, B, to=A, why="2 engines died"),
    event("asked", 3, A, kind="back", by={"who": "the head"}, why="2 engines died"),
    event("serving", 3, A, engine=71.5, without=200.0),
    event("asked", 4, B, recipe="r37", kind="deploy", by={"who": "me", "dirty": True}),
    event("asked", 5, A, recipe="r36", kind="rollback", by={}),
    event("gave up", 5, A, why="5 engines died"),
]


def test_each_wish_says_how_it_ended() -> None:
    rows = told(EVENTS)
    ends = [(row.switch, row.ended) for row in rows]
    assert ends == [
        (1, "served"), (2, "rolled back"), (3, "served"), (4, "replaced"), (5, "gave up"),
    ]  # fmt: skip
    assert told(EVENTS[:1])[0].ended == "" and told(EVENTS[:2])[0].ended == "serving"
    assert (rows[2].recipe, rows[2].image) == ("r36", {"tag": "t"})
    assert (rows[2].without, rows[2].engine) == (200.0, 71.5)


def test_a_wish_whose_beginning_was_put_aside_is_told_too() -> None:
    (row,) = told(EVENTS[1:2])
    assert (row.switch, row.ended, row.recipe) == (1, "serving", "")


def test_the_table_is_for_people() -> None:
    lines = table(told(EVENTS))
    assert len(lines) == 6
    assert "rolled back: 2 engines died" in lines[2] and "c0ffee" in lines[2]
    assert "200 s (engine 72 s)" in lines[3] and "the head" in lines[3]
    assert "me +changes" in lines[4]
    assert table([]) == ["nothing was asked for yet, or only by an older version"]
    assert Row(1.0, 1, A).document()["release"] == A
