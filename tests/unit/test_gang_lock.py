"""The lock of a gang as its head keeps it: taken, renewed, expired, broken, given back."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm import run_process
from pyinfra_vllm.agent import paths
from pyinfra_vllm.gang_lock import EXPIRES, Lock

ALICE = Lock("main", "serve r37", "alice@laptop:1")
BOB = Lock("main", "pause", "bob@desk:2")


@pytest.fixture
def run_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RUN_ROOT", str(tmp_path / "run"))
    return tmp_path / "run"


def ask(script: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def silent_for(root: Path, seconds: float) -> None:
    path = root / "main.lock"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "renewed": known["renewed"] - seconds}))


def test_the_first_gets_it_and_the_second_hears_of_the_first(run_root: Path) -> None:
    assert ask(ALICE.taking())["taken"]
    answer = ask(BOB.taking())
    assert not answer["taken"]
    text = BOB.refusal(answer)
    assert "alice@laptop:1 (serve r37, since 20" in text
    assert "--data break_lock=alice@laptop:1" in text
    assert not ask(BOB.releasing())["released"], "nobody gives back what another has"
    assert ask(ALICE.releasing())["released"]
    answer = ask(BOB.taking())
    assert answer["taken"] and BOB.taken_from(answer) is None


def test_taken_twice_by_the_same_run_it_is_still_that_run_s(run_root: Path) -> None:
    assert ask(ALICE.taking())["taken"] and ask(ALICE.taking())["taken"]


def test_it_expires_when_nobody_renews_it(run_root: Path) -> None:
    ask(ALICE.taking())
    silent_for(run_root, EXPIRES + 1)
    assert ask(ALICE.renewing())["kept"], "nobody has taken it yet"
    assert not ask(BOB.taking())["taken"], "and it has been renewed"
    silent_for(run_root, EXPIRES + 1)
    answer = ask(BOB.taking())
    assert answer["taken"]
    assert "nobody renewed it for 2 min 0" in str(BOB.taken_from(answer))
    lost = ask(ALICE.renewing())
    assert not lost["kept"]
    assert "bob@desk:2 has it" in ALICE.lost_to(lost)


def test_it_is_broken_only_by_the_name_of_its_holder(run_root: Path) -> None:
    ask(ALICE.taking())
    assert not ask(BOB.taking("carol@phone:3"))["taken"]
    answer = ask(BOB.taking("alice@laptop:1"))
    assert answer["taken"] and "is broken, as asked for" in str(BOB.taken_from(answer))
    ask(BOB.releasing())
    assert "it is gone" in ALICE.lost_to(ask(ALICE.renewing()))


def test_of_a_process_of_this_machine_that_is_gone_it_is_taken_over(run_root: Path) -> None:
    script = "import json; from pyinfra_vllm import run_process as p; print(json.dumps(p.mine()))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert ask(replace(ALICE, process=json.loads(ended.stdout)).taking())["taken"]
    answer = ask(BOB.taking())
    assert not answer["taken"]
    gone = BOB.gone(answer)
    assert gone is not None
    answer = ask(BOB.taking(gone=gone))
    assert answer["taken"] and "has ended without giving it back" in str(BOB.taken_from(answer))
    answer = ask(ALICE.taking(gone=gone))
    assert not answer["taken"], "it is another's by now"
    assert ALICE.gone(answer) is None, "who runs"
    for change in ({"boot": "x"}, {"host": "x"}, {"user": -1}, {"pids": "pid:[1]"}):
        assert not run_process.is_gone({**gone, **change}), "nothing is known of it"
    assert run_process.is_gone({**answer["process"], "started": 1}), "the pid is another's now"
    assert not run_process.is_gone({})


def test_one_of_an_earlier_boot_or_that_makes_no_sense_holds_nobody_up(run_root: Path) -> None:
    ask(ALICE.taking())
    silent_for(run_root, -1e9)  # the node's clock begins anew with a boot
    assert ask(BOB.taking())["taken"]
    (run_root / "main.lock").write_text("{")
    assert ask(ALICE.taking())["taken"]


def test_of_many_at_once_one_gets_it(run_root: Path) -> None:
    locks = [Lock("main", "serve", f"user@host:{number}") for number in range(8)]
    runs = [
        subprocess.Popen(
            [sys.executable, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in locks
    ]
    for run, lock in zip(runs, locks, strict=True):
        assert run.stdin is not None
        run.stdin.write(lock.taking())
        run.stdin.close()
    answers = [json.loads(run.stdout.read()) for run in runs if run.stdout]
    assert sum(answer["taken"] for answer in answers) == 1
    assert [run.wait() for run in runs] == [0] * len(runs)
