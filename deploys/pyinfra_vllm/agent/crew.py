"""The jobs that run now: hears them, gives up those that hang, answers for those that died."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import jobs
from .events import Cleared, Event, Known, Missing, NotYet, Step, heard
from .jobs import Job, Say

Name = Literal["prepare", "ask", "clear"]


@dataclass(frozen=True)
class _Limits:
    silence: float
    whole: float


_LIMITS: dict[Name, _Limits] = {
    "prepare": _Limits(silence=60.0, whole=3600.0),
    "clear": _Limits(silence=60.0, whole=60.0),
}


class Crew:
    """At most one job of each name runs."""

    def __init__(self, selector: selectors.BaseSelector, log: Callable[[str], None]) -> None:
        self._selector = selector
        self._log = log
        self._jobs: dict[str, Job] = {}
        self._given_up: list[Job] = []

    def start(self, name: Name, work: Callable[[Say], None], seconds: float | None = None) -> None:
        """Start a job; ``seconds``: its limit where it has one of its own."""
        limits = _Limits(seconds, seconds) if seconds else _LIMITS[name]
        job = jobs.start(name, work, limits.silence, limits.whole)
        self._jobs[name] = job
        self._selector.register(job, selectors.EVENT_READ)

    def dismiss(self, name: Name) -> None:
        """Kill the job of this name, if there is one; its answer is not wanted any more."""
        job = self._jobs.get(name)
        if job is not None:
            job.answered = True
            self._give_up(job)

    def hanging(self, name: Name) -> Job | None:
        """A job of this name that was given up and can't be killed, if there is one."""
        self._given_up = [job for job in self._given_up if not job.is_gone()]
        return next((job for job in self._given_up if job.name == name), None)

    def hear(self, job: Job) -> list[Event]:
        """Events of the words that are there to read."""
        events: list[Event] = []
        try:
            for word in job.words():
                if "note" in word:
                    self._log(str(word["note"]))
                    continue
                event = heard(word)
                if isinstance(event, Step):
                    job.last_step = event.detail
                elif not isinstance(event, Known):
                    job.answered = True
                events += [event] if event else []
        except EOFError:
            self._give_up(job)
            events += self._missing_answer(job, "ended without an answer")
        return events

    def late(self) -> list[Event]:
        """Gives up the jobs that hang; events that stand for their answers."""
        events: list[Event] = []
        for job in list(self._jobs.values()):
            if job.is_late(time.monotonic()):
                self._give_up(job)
                events += self._missing_answer(
                    job,
                    f"no answer for {job.silence:.0f} s (pid {job.pid}); "
                    "a file server or docker may hang",
                )
        self.hanging("prepare")
        return events

    def end(self) -> None:
        """Kill what still runs."""
        for job in self._jobs.values():
            job.kill()

    def _give_up(self, job: Job) -> None:
        self._selector.unregister(job)
        del self._jobs[job.name]
        os.close(job.reader)
        job.kill()
        self._given_up.append(job)

    @staticmethod
    def _missing_answer(job: Job, what: str) -> list[Event]:
        if job.answered:
            return []
        detail = f"{job.last_step}: {what}"
        if job.name == "prepare":
            return [Missing(detail)]
        return [NotYet(detail)] if job.name == "ask" else [Cleared(detail)]
