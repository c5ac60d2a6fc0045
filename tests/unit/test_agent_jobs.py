"""Work that may hang, in children that can be given up."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import crew, jobs
from pyinfra_vllm.agent.events import Cleared, Event, Missing, Step


def _words(job: jobs.Job) -> list[dict[str, Any]]:
    words: list[dict[str, Any]] = []
    try:
        while True:
            words += list(job.words())
    except EOFError:
        os.close(job.reader)
        return words


def _is_gone(job: jobs.Job) -> bool:
    end = time.monotonic() + 5
    while not job.is_gone():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_job_answers_in_documents_and_leaves_no_zombie() -> None:
    def count(say: jobs.Say) -> None:
        for n in range(3):
            say(n=n)

    job = jobs.start("ask", count, 5, 5)
    assert _words(job) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert _is_gone(job) and not Path(f"/proc/{job.pid}").exists()


def test_job_that_hangs_is_late_and_dies_with_what_it_started() -> None:
    def hang(say: jobs.Say) -> None:
        child = subprocess.Popen(["sleep", "60"])
        say(child=child.pid)
        child.wait()

    job = jobs.start("prepare", hang, 0.2, 60)
    (word,) = job.words()
    assert not job.is_late(time.monotonic())
    assert job.is_late(time.monotonic() + 0.3)
    job.kill()
    assert _is_gone(job)
    os.close(job.reader)
    end = time.monotonic() + 5
    while _lives(word["child"]) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _lives(word["child"])


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_job_without_a_parent_ends_itself() -> None:
    job = jobs.start("clear", lambda say: time.sleep(60), 60, 1)
    assert _words(job) == []
    assert _is_gone(job)


def test_job_that_hangs_is_answered_for_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(crew._LIMITS, "prepare", crew._Limits(silence=0.2, whole=60.0))
    notes: list[str] = []
    with selectors.DefaultSelector() as selector:
        hands = crew.Crew(selector, notes.append)

        def hang(say: jobs.Say) -> None:
            say(note="a word for the journal")
            say(step="looks for /mnt/nas/hub")
            time.sleep(60)

        hands.start("prepare", hang)
        heard: list[Event] = []
        while not heard:
            ((key, _),) = selector.select(5)
            assert isinstance(key.fileobj, jobs.Job)
            heard = hands.hear(key.fileobj)
        assert heard == [Step("looks for /mnt/nas/hub")]
        time.sleep(0.3)
        (missing,) = hands.late()
        assert isinstance(missing, Missing)
        assert missing.detail.startswith("looks for /mnt/nas/hub: no answer for")
        assert hands.late() == [] and notes == ["a word for the journal"]
        assert _is_gone(key.fileobj) and hands.hanging("prepare") is None


def test_job_that_dies_without_an_answer_is_answered_for() -> None:
    with selectors.DefaultSelector() as selector:
        hands = crew.Crew(selector, lambda line: None)
        hands.start("clear", lambda say: os._exit(1))
        ((key, _),) = selector.select(5)
        assert isinstance(key.fileobj, jobs.Job)
        assert hands.hear(key.fileobj) == [Cleared("starts: ended without an answer")]


def test_job_that_is_not_wanted_any_more_says_nothing() -> None:
    with selectors.DefaultSelector() as selector:
        hands = crew.Crew(selector, lambda line: None)
        hands.start("ask", lambda say: time.sleep(60), 60)
        hands.dismiss("ask")
        hands.dismiss("ask")
        assert selector.select(0) == [] and hands.late() == []
