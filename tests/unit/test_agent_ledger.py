"""What the head does with wishes: a book, a history, and going back, in real files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_head import HERE, NEW, OLD, OLDER, Head
from pyinfra_vllm.agent import paths, switches
from pyinfra_vllm.agent.events import Wished
from pyinfra_vllm.agent.said import ABSENT, End, Said


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    return Head(tmp_path)


def test_a_release_that_is_not_ready_in_time_is_taken_back(head: Head) -> None:
    head.wish()
    assert head.look().on_trial
    for _ in range(11):
        assert head.look(5).release == NEW
    after = head.look(6)
    assert (after.release, after.switch, after.on_trial) == (OLD, 3, False)
    assert "rolled back from bbbbbbbbbbbb: no first completion in 61 s" in after.note
    assert head.wanted()["previous"] == OLDER and head.wanted()["earlier"] == []
    assert any("rolled back from" in line for line in head.said)
    head.look(1)
    assert head.events() == [("asked", 2), ("rolled back", 2), ("asked", 3)]


def test_time_counts_only_while_all_are_connected_and_nobody_has_paused(head: Head) -> None:
    head.wish()
    head.hear(2, None)
    for _ in range(50):
        assert head.look(5).release == NEW
    head.hear(2, HERE)
    (head.folder / "paused").write_text("{}")
    for _ in range(50):
        assert head.look(5).release == NEW
    (head.folder / "paused").unlink()
    assert head.look(59).release == NEW
    assert head.look(2).release == OLD


def test_what_was_counted_outlives_the_agent(head: Head) -> None:
    head.wish()
    head.look()
    head.look(50)
    head.begin()
    head.look()
    assert head.look(5).release == NEW
    assert head.look(6).release == OLD


def test_a_start_that_makes_progress_gets_more_time_but_not_for_ever(head: Head) -> None:
    head.wish()
    head.start()
    head.look()
    for _ in range(23):
        head.state = replace(head.state, talked_at=head.now)
        assert head.look(5).release == NEW
    head.state = replace(head.state, talked_at=head.now)
    assert head.look(6).release == OLD


def test_two_deaths_are_enough_and_a_broken_connection_is_none(head: Head) -> None:
    head.wish()
    head.look()
    for code in (1, None, 125):
        assert head.look().release == NEW
        head.start()
        head.die(code)
    assert head.look().release == OLD
    assert "2 engines died" in head.wanted()["back"]["why"]


def test_a_rank_that_lacks_the_release_takes_it_back_and_one_that_waits_does_not(
    head: Head,
) -> None:
    head.wish()
    head.to(wanted=NEW, ready=True)
    head.hear(1, Said("lack", NEW, text="the NAS is away"))
    assert head.look().release == NEW
    head.hear(1, Said("lack", OLD, code=ABSENT, text="of an earlier wish"))
    assert head.look().release == NEW
    head.hear(1, Said("lack", NEW, code=ABSENT, text="no image"))
    assert head.look().release == OLD
    assert "rank 1: no image" in head.wanted()["back"]["why"]


def test_a_trial_ends_with_the_first_completion(head: Head) -> None:
    head.wish()
    head.look()
    head.start()
    head.look(7)
    head.to(served=True)
    after = head.look(500)
    assert (after.release, after.passed, after.on_trial) == (NEW, NEW, False)
    for _ in range(3):
        head.start()
        head.die()
    assert head.look().release == NEW
    asked, serving = head.history()
    assert (asked["event"], serving["event"]) == ("asked", "serving")
    assert (serving["engine"], serving["without"], serving["start"]) == (7.0, None, 1)


def test_time_without_service_is_from_the_end_of_the_start_that_served(head: Head) -> None:
    head.wish(OLD, 1)
    head.look()
    head.start(OLD)
    head.to(served=True)
    head.look(100)
    head.wish()
    head.look()
    head.to(stage="ending", end=End(0, None, "switch to b"), phase="stopping")
    head.to(stage="assembling", served=False)
    head.begin()
    head.look(4)
    head.start()
    head.look(20)
    head.to(served=True)
    assert head.history()[-1]["without"] == 24.0
    assert head.history()[-1]["engine"] == 20.0


def test_a_first_deploy_has_nothing_to_go_back_to_and_stops_trying(head: Head) -> None:
    head.wish(previous=None, earlier=[])
    for _ in range(2):
        head.look()
        head.start()
        head.die()
    after = head.look()
    assert after.release == NEW and after.hold is not None and after.hold.phase == "failed"
    assert "2 engines died" in after.hold.text and "no earlier release" in after.hold.text
    head.begin()
    assert head.look(3).hold == after.hold
    assert head.events() == [("asked", 2), ("gave up", 2)]
    head.wish(previous=None, switch=3)
    assert head.look().hold is None


def test_the_head_does_not_go_back_to_what_is_not_there(head: Head) -> None:
    (head.folder / "releases" / OLD / paths.LAUNCH).unlink()
    head.wish()
    head.look()
    after = head.look(61)
    assert after.release == NEW and after.hold is not None and after.hold.phase == "failed"


def test_a_release_that_is_lent_goes_back_when_nobody_is_heard_of(head: Head) -> None:
    lease = head.folder / "lease"
    lease.touch()
    head.wish(lease=60)
    assert head.look().lent
    head.start()
    head.to(served=True)
    assert head.look(500).release == NEW
    old = lease.stat().st_mtime - 61
    os.utime(lease, (old, old))
    after = head.look(1)
    assert after.release == OLD and "nobody who runs the trial" in after.note
    assert not after.lent


def test_a_lease_that_cannot_be_given_back_leaves_what_serves(head: Head) -> None:
    (head.folder / "releases" / OLD / paths.LAUNCH).unlink()
    head.wish(lease=60)
    head.start()
    head.to(served=True)
    after = head.look(1)
    assert (after.release, after.hold) == (NEW, None)


def test_a_wish_of_an_older_deploy_is_not_on_trial(head: Head) -> None:
    text = json.dumps({"schema": 1, "release": NEW, "previous": OLD, "deadline": None, "switch": 1})
    (head.folder / "wanted.json").write_text(text)
    assert head.look(99999) == Wished(NEW, None, 1)


@pytest.mark.parametrize("terms", [{"trial": 5}, {"trial": {"seconds": "x"}}, {"lease": []}])
def test_terms_that_cannot_be_read_put_nothing_on_trial(head: Head, terms: dict[str, Any]) -> None:
    head.wish(**terms)
    assert head.look(99999).release == NEW


def test_people_are_told_once_that_the_head_went_back(head: Head) -> None:
    head.wish()
    head.look()
    assert head.ledger.alert() is None
    head.look(61)
    kind, message = head.ledger.alert() or ("", "")
    assert kind == "rolled back" and "no first completion" in message
    assert head.ledger.alert() is None
    head.look()
    assert head.ledger.alert() is None, "not when the wish to go back has been noted either"
    head.begin()
    head.look()
    assert head.ledger.alert() is None


def test_a_disk_that_is_full_is_complained_of_once_and_tried_again(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    head.wish()
    head.look()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyinfra_vllm.agent.wish.Wishes.replace", full)
    assert [head.look(61).release for _ in range(3)] == [NEW] * 3
    assert sum("can't go back" in line for line in head.said) == 1
    monkeypatch.undo()
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(head.folder.parents[3]))
    assert head.look(1).release == OLD


def test_the_history_is_bounded_and_a_torn_line_spoils_no_other(head: Head) -> None:
    path = head.folder / "history.jsonl"
    path.write_bytes(b'{"torn')
    assert switches.record("main", "asked", 1.0, 1, NEW) == ""
    torn, line = path.read_text().splitlines()
    assert torn == '{"torn' and json.loads(line)["release"] == NEW
    for number in range(200):
        switches.record("main", "asked", 1.0, number, NEW, kind="deploy", by={"who": "x" * 2000})
    sizes = [(head.folder / Path(name).name).stat().st_size for name in switches.files("main")]
    assert len(sizes) == 1 + switches.OLDER and max(sizes) < switches.BYTES + 3000
    assert len(list(head.folder.glob("history*"))) == len(sizes)
