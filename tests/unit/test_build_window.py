"""The pause of a build window: a lease that its agent, its controller and its unit agree on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyinfra_vllm import build_window
from pyinfra_vllm.agent import pace, paths, pause
from pyinfra_vllm.agent.wish import Wishes

LEASE = build_window.LEASE


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "STATE_ROOT", str(tmp_path))
    (tmp_path / "main").mkdir()
    return tmp_path / "main" / "paused"


def ask(script: str) -> int:
    return subprocess.run([sys.executable, "-"], input=script, text=True).returncode


def last_touched(mark: Path, seconds: float) -> None:
    os.utime(mark, (time.time() - seconds,) * 2)


def test_the_gang_is_paused_while_somebody_renews_the_window(mark: Path) -> None:
    assert ask(build_window.opening("main", "alice@laptop", "vllm:1")) == 0
    assert "paused by alice@laptop" in pause.text(mark) and "build window" in pause.text(mark)
    last_touched(mark, LEASE - 10)
    assert pause.text(mark)
    assert ask(build_window.renewing("main")) == 0
    assert time.time() - mark.stat().st_mtime < 10
    assert ask(build_window.closing("main")) == 0
    assert not mark.exists() and pause.text(mark) == ""


def test_a_window_that_nobody_renews_ends_and_stays_over(mark: Path) -> None:
    ask(build_window.opening("main", "alice@laptop", "vllm:1"))
    last_touched(mark, LEASE + 10)
    assert pause.text(mark) == ""
    assert ask(build_window.renewing("main")) == 1, "a late controller stops nobody who serves"
    last_touched(mark, -3600)
    assert pause.text(mark) == "", "nor does a clock that was set back"


def test_the_lease_goes_with_the_agent_s_pace(mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(build_window.opening("main", "alice@laptop", "vllm:1"))
    last_touched(mark, LEASE / 2)
    monkeypatch.setenv(pace.VARIABLE, "0.1")
    assert pause.text(mark) == ""


def test_the_pause_of_a_person_has_no_lease_and_is_left_alone(mark: Path) -> None:
    mark.write_text(json.dumps({"who": "bob", "when": "today", "why": "cables"}))
    last_touched(mark, 30 * 24 * 3600)
    for script in (
        build_window.opening("main", "alice", "x"), build_window.renewing("main"),
    ):  # fmt: skip
        assert ask(script) == 1
    assert ask(build_window.closing("main")) == 0
    assert "paused by bob" in pause.text(mark)
    mark.write_text("")
    last_touched(mark, 30 * 24 * 3600)
    assert pause.text(mark), "the mark alone counts"


def test_the_head_s_agent_sees_the_lease_end_with_no_file_changed(mark: Path) -> None:
    wishes = Wishes("main")
    ask(build_window.opening("main", "alice@laptop", "vllm:1"))
    assert wishes.look().paused
    last_touched(mark, LEASE - 1)
    assert wishes.look().paused
    time.sleep(1.5)
    assert wishes.look().paused == ""
