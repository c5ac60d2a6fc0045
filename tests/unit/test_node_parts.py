"""Parts of the node state run beside each other and can't hold each other up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.node.collect import parts
from pyinfra_vllm.node.collect.parts import Unavailable, run_parts

DEADLINE = 0.3


def test_every_part_gives_its_value_in_the_order_asked_for() -> None:
    found = run_parts({"b": lambda: 1, "a": lambda: {"x": [2]}}, DEADLINE)
    assert list(found) == ["b", "a"]
    assert (found["b"]["ok"], found["b"]["value"]) == (True, 1)
    assert found["a"]["value"] == {"x": [2]}


def test_a_part_that_fails_says_why_and_the_others_stand() -> None:
    def unavailable() -> object:
        raise Unavailable("docker: not installed")

    def broken() -> object:
        raise ValueError("odd")

    found = run_parts({"a": unavailable, "b": broken, "c": lambda: 3}, DEADLINE)
    assert not found["a"]["ok"] and found["a"]["error"] == "docker: not installed"
    assert not found["b"]["ok"] and found["b"]["error"] == "ValueError: odd"
    assert found["c"]["value"] == 3


def test_a_part_that_hangs_is_given_up_at_the_deadline() -> None:
    def stopped() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    before, started = children(), time.monotonic()
    functions = {"a": lambda: time.sleep(600), "b": stopped, "c": lambda: 3}
    found = run_parts(functions, DEADLINE, {"a": "dockerd"})
    assert time.monotonic() - started < DEADLINE + 1.5
    assert found["a"]["error"] == "dockerd: no answer in 0.3 s"
    assert found["b"]["error"] == "b: no answer in 0.3 s"
    assert found["c"]["value"] == 3
    assert children() <= before


def test_a_part_that_dies_says_so() -> None:
    before = children()
    found = run_parts({"a": lambda: os.kill(os.getpid(), signal.SIGKILL)}, DEADLINE)
    assert "without an answer" in found["a"]["error"]
    assert children() <= before


def test_commands_that_a_late_part_started_are_killed_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def starts_one() -> None:
        subprocess.run(["/bin/sh", "-c", f"echo $$ > {pid_file}; exec sleep 600"])

    assert not run_parts({"a": starts_one}, DEADLINE)["a"]["ok"]
    assert is_gone(int(pid_file.read_text()))


def test_an_answer_larger_than_a_pipe_comes_whole() -> None:
    found = run_parts({"a": lambda: "x" * 5_000_000}, 10)
    assert len(found["a"]["value"]) == 5_000_000


def test_names_that_are_no_text_are_shown_with_question_marks() -> None:
    found = run_parts({"a": lambda: os.fsdecode(b"caf\xe9")}, DEADLINE)
    assert found["a"]["value"] == "caf?"


UNKILLABLE = """
import os, sys, time
from pyinfra_vllm.node.collect import parts
def hang():
    time.sleep(600)
fork = os.fork
started = []
parts.os.fork = lambda: started.append(fork()) or started[-1]
parts.os.kill = parts.os.killpg = lambda *a: None
print(parts.run_parts({"a": hang}, 0.3)["a"]["error"], started[0])
"""


def test_a_child_that_the_kernel_holds_does_not_hold_the_connection() -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", UNKILLABLE], capture_output=True, text=True, timeout=60
    )
    try:
        # Where its pipes were still in the child's hands, this would have taken 600 s.
        assert time.monotonic() - started < 10
        assert done.stdout.startswith("a: no answer in 0.3 s"), done.stderr
    finally:
        os.kill(int(done.stdout.split()[-1]), signal.SIGKILL)


def test_a_slow_reader_of_the_pipes_is_no_reason_to_lose_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poll = parts.select.poll

    class Slow:
        def __init__(self) -> None:
            self._poll = poll()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._poll, name)

        def poll(self, wait: float) -> list[tuple[int, int]]:
            time.sleep(0.05)
            return self._poll.poll(wait)

    monkeypatch.setattr(parts.select, "poll", Slow)
    assert run_parts({"a": lambda: 1}, DEADLINE)["a"]["value"] == 1


def children() -> set[str]:
    """Children of this process, those of other tests too."""
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False
