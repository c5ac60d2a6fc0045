"""The history of switches, one row for each thing that was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import switches
from pyinfra_vllm.agent.history import Book, Death, History
from pyinfra_vllm.carried_history import book, moved, texts
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


def test_a_long_reason_is_cut_for_people_alone() -> None:
    why = "2 engines died before a first completion, the last: rank 2 on lab-2: " + "x" * 100
    rows = told([*EVENTS[:3], event("rolled back", 2, B, why=why)])
    line = table(rows)[2]
    assert line.endswith("…") and "rolled back: 2 engines died" in line
    assert len(line.partition("rolled back")[2]) < 60
    assert rows[1].document()["why"] == why


def test_a_move_of_the_head_is_told_and_what_can_t_be_known_after_it() -> None:
    rows = told([*EVENTS[:2], {**moved(2000.0, "spark-0", True)}, event("asked", 1, A)])
    assert [(row.kind, row.ended) for row in rows] == [
        ("deploy", "served"), ("move", "moved"), ("", ""),
    ]  # fmt: skip
    assert "moved: the head was spark-0" in table(rows)[2]
    (row,) = told([moved(2000.0, "10.0.0.1", False)])
    assert "10.0.0.1, which was not reached: what it had served is not known here" in row.why


def lines(*events: dict[str, Any]) -> list[str]:
    return [json.dumps({"schema": 1, **known}) for known in events]


def test_the_new_head_has_both_histories_in_the_order_of_time() -> None:
    theirs, note = lines(*EVENTS), moved(2000.0, "spark-0", True)
    ours = lines(event("asked", -5, B))
    newest, *older = switches.files("main")
    (text,) = texts("main", ours, theirs, note).values()
    assert text.splitlines() == [*ours, *theirs, *lines(note)]
    again = texts("main", text.splitlines(), theirs, {**note, "at": 2001.0})
    assert again == {newest: text}, "a deploy that was cut carries it once"
    many = [json.dumps(event("asked", number, A, why="x" * 900)) for number in range(200)]
    found = texts("main", [], many, note)
    assert len(found) > 3 and list(found) == [newest, *older][: len(found)]
    assert max(map(len, found.values())) <= switches.BYTES
    assert "".join(reversed(found.values())).splitlines()[:200] == many


def test_starts_and_time_without_service_are_counted_on(tmp_path: Path) -> None:
    path = tmp_path / "starts.json"
    Book(path).keep(History(number=7, serves=True, broken=True, deaths=(Death(1.0, A, 1, "x"),)))
    path.write_text(str(book(path.read_text(), 2000.0)))
    assert Book.open(path).history == History(number=7, down_since=2000.0)
    assert book("", 1.0) is None and book("[]", 1.0) is None
