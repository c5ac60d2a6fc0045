"""Somebody's own command on the controller: its output is shown and kept, ^C ends it alone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import gevent
from gevent import subprocess
from pyinfra import logger
from pyinfra.api import Host

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS = 10
"""That a command gets to end by itself."""
INTERRUPTED = 130
"""Exit code of what ^C has ended, as shells have it."""


class Interrupts:
    """While it is entered, ^C and the like are noted instead of ending the run."""

    def __init__(self) -> None:
        self._seen = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self._seen:
            logger.warning("interrupted: goes back first, please wait")
        self._seen = True

    def happened(self) -> bool:
        """Whether one came."""
        return self._seen


class Command:
    """``text`` for the shell; ``folder`` gets ``output.txt``."""

    def __init__(self, text: str, environment: dict[str, str], folder: Path) -> None:
        self._text = text
        self._environment = environment
        self._folder = folder
        self._began = self._ended = time.time()

    def run(self, host: Host, interrupts: Interrupts) -> int:
        """Its exit code; that of ^C when that ended it. OSError when nothing can be kept."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._began = time.time()
        with (self._folder / "output.txt").open("wb") as kept:
            child = subprocess.Popen(
                ["/bin/sh", "-c", self._text],
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            shown = gevent.spawn(_show, child.stdout, kept, host.print_prefix)
            while child.poll() is None and not interrupts.happened():
                gevent.sleep(0.2)
            is_cut = child.poll() is None
            _end(child.pid, child)
            shown.join(timeout=_SECONDS)
            shown.kill()
        self._ended = time.time()
        return INTERRUPTED if is_cut else int(child.returncode)

    def result(self, code: int) -> dict[str, Any]:
        """What is kept of it beside its output; times are Unix seconds."""
        return {
            "command": self._text,
            "code": code,
            "began": self._began,
            "ended": self._ended,
            "seconds": round(self._ended - self._began, 1),
            "environment": self._environment,
        }


def _show(source: Any, kept: Any, prefix: str) -> None:
    for line in source:
        kept.write(line)
        kept.flush()
        logger.info(f"{prefix}  {line.decode(errors='replace').rstrip()}")


def _end(group: int, child: Any) -> None:
    """No process of the command is left: neither it nor what it has started."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + _SECONDS
        while child.poll() is None and time.monotonic() < end:
            gevent.sleep(0.1)
