"""Work that may hang, each in a child process that the main loop can give up.

A child is forked, not started anew: it runs the code of its parent even when
the archive on disk was replaced meanwhile. It answers in JSON documents, one a
line. There are no threads.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


class Say(Protocol):
    """Gives the parent one document."""

    def __call__(self, **values: Any) -> None: ...


EXIT_BUG = 70
"""EX_SOFTWARE of sysexits.h."""


@dataclass
class Job:
    """A running child. ``silence``: seconds without a word after which it counts as hung."""

    name: str
    pid: int
    reader: int
    silence: float
    about: str = ""
    last_step: str = "starts"
    answered: bool = False
    last_word: float = field(default_factory=time.monotonic)
    _rest: bytes = b""

    def fileno(self) -> int:
        """For a selector."""
        return self.reader

    def words(self) -> Iterator[dict[str, Any]]:
        """The documents that are there to read; EOFError after the last one."""
        data = os.read(self.reader, 65536)
        if not data:
            raise EOFError
        self.last_word = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def is_late(self, now: float) -> bool:
        """Whether it hangs."""
        return now - self.last_word > self.silence

    def kill(self) -> None:
        """Kill the child and what it started; one that hangs in the kernel dies later."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGKILL)

    def is_gone(self) -> bool:
        """Whether the child has ended; reaps it."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True


def start(
    name: str, work: Callable[[Say], None], silence: float, limit: float, about: str = ""
) -> Job:
    """Run ``work`` in a child, which ends itself after ``limit`` seconds even without a parent."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Job(name, pid, reader, silence, about)
    code = EXIT_BUG
    try:
        os.close(reader)
        _become_child(limit)
        work(_speaker(writer))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _become_child(limit: float) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(max(1, int(limit)))


def _speaker(writer: int) -> Say:
    def say(**values: Any) -> None:
        data = json.dumps(values).encode() + b"\n"
        while data:
            data = data[os.write(writer, data) :]

    return say
