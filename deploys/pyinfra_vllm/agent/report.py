"""Tell systemd, the journal and the status file what the agent does."""

from __future__ import annotations

import os
import time
from pathlib import Path

from . import status
from .notify import Notifier
from .state import State
from .status import Failure, Status
from .textfile import Textfile

_REPEAT = 60.0
"""Seconds between two journal lines that say the same while something is waited for."""


class Report:
    """``file``: the status file; ``digest``: sha256 of the agent's archive."""

    def __init__(self, gang: str, file: Path, digest: str) -> None:
        self._gang = gang
        self._file = file
        self._digest = digest
        self._notifier = Notifier()
        self._fed = 0.0
        self._textfile = Textfile(gang)
        self._trouble = ""
        self._written: Status | None = None
        self._said: tuple[str, float] = ("", 0.0)

    def log(self, line: str) -> None:
        """A line of the journal."""
        print(line, flush=True)

    def last_failure(self) -> Failure | None:
        """What an earlier run left in the status file."""
        return status.last_failure(self._file)

    def ready(self) -> None:
        """The agent runs, which says nothing of the engine."""
        self._notifier.ready()

    def tell(self, state: State) -> None:
        """Say what has changed, and that the agent lives."""
        self._show(self._status(state))

    def wait(self, detail: str) -> None:
        """Say what is waited for before the gang is known."""
        since = self._written.since if self._written else time.time()
        failure = self.last_failure()
        self._show(
            Status(
                agent=self._digest,
                pid=os.getpid(),
                gang=self._gang,
                release=None,
                rank=None,
                phase="waiting",
                since=since,
                detail=detail,
                engine_started=None,
                last_failure=failure,
            )
        )

    def _show(self, document: Status) -> None:
        self._feed()
        self._repeat(document)
        trouble = self._textfile.tell(document)
        if trouble and trouble != self._trouble:
            self.log(trouble)
        self._trouble = trouble
        if document == self._written:
            return
        self._notifier.status(f"{document.phase}: {document.detail}")
        if document.phase == "stopping":
            self._notifier.stopping()
        try:
            status.write(self._file, document)
        except OSError as error:
            self.log(f"status file {self._file}: {error.strerror}")
        self._written = document

    def _feed(self) -> None:
        now = time.monotonic()
        interval = self._notifier.interval
        if interval is not None and now - self._fed >= min(interval, 1.0):
            self._notifier.alive()
            self._fed = now

    def _repeat(self, state: Status) -> None:
        line = f"{state.phase}: {state.detail}" if state.detail else state.phase
        said, at = self._said
        again = state.phase in ("waiting", "paused", "failed") and time.monotonic() - at >= _REPEAT
        if line != said or again:
            self.log(line)
            self._said = (line, time.monotonic())

    def _status(self, state: State) -> Status:
        started = state.engine_started
        return Status(
            agent=self._digest,
            pid=os.getpid(),
            gang=self._gang,
            release=state.release,
            rank=state.tether.rank,
            phase=state.phase,
            since=state.since,
            detail=state.detail,
            engine_started=started.wall if started else None,
            last_failure=state.last_failure,
            start=state.tether.start.number if started and state.tether.start else None,
            switch=state.wished.switch,
            passed=state.wished.passed,
            note=state.wished.note,
        )
