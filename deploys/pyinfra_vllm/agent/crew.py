"""The jobs that run now: hears them, gives up those that hang, answers for those that died."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import jobs
from .events import Cleared, Event, Missing, NotYet, Quiet, Sample, Seen, Step, Tidied, heard
from .jobs import Job, Say

Name = Literal["tidy", "prepare", "look", "ask", "watch", "listen", "clear", "alert"]


@dataclass(frozen=True)
class _Limits:
    silence: float
    whole: float


_LIMITS: dict[Name, _Limits] = {
    "tidy": _Limits(silence=60.0, whole=90.0),
    "prepare": _Limits(silence=60.0, whole=3600.0),
    "look": _Limits(silence=120.0, whole=3600.0),
    "watch": _Limits(silence=120.0, whole=150.0),
    "listen": _Limits(silence=20.0, whole=20.0),
    "clear": _Limits(silence=60.0, whole=60.0),
    "alert": _Limits(silence=90.0, whole=90.0),
}


class Crew:
    """At most one job of each name runs."""

    def __init__(self, selector: selectors.BaseSelector, log: Callable[[str], None]) -> None:
        self._selector = selector
        self._log = log
        self._jobs: dict[str, Job] = {}
        self._given_up: list[Job] = []

    def start(
        self,
        name: Name,
        work: Callable[[Say], None],
        seconds: float | None = None,
        about: str = "",
    ) -> None:
        """Start a job; ``seconds``: its limit where it has one of its own.

        ``about``: the release that it looks at. One of this name that still runs is dismissed.
        """
        self.dismiss(name)
        limits = _Limits(seconds, seconds) if seconds else _LIMITS[name]
        job = jobs.start(name, work, limits.silence, limits.whole, about)
        self._jobs[name] = job
        self._selector.register(job, selectors.EVENT_READ)

    def dismiss(self, name: Name) -> None:
        """Kill the job of this name, if there is one; its answer is not wanted any more."""
        job = self._jobs.get(name)
        if job is not None:
            job.answered = True
            self._give_up(job)

    def has(self, name: Name) -> bool:
        """Whether a job of this name runs."""
        return name in self._jobs

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
                else:
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
        self._given_up = [job for job in self._given_up if not job.is_gone()]
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
        answers: dict[str, Event] = {
            "tidy": Tidied(detail),
            "prepare": Missing(job.about, detail),
            "look": Seen(detail),
            "ask": NotYet(detail),
            "watch": Sample(None, False, False, None, detail),
            "listen": Quiet(None),
            "clear": Cleared(detail),
        }
        return [answers[job.name]] if job.name in answers else []
