"""Functions that run side by side, each in a child process with a deadline.

``stat()`` on a dead NFS server and a read from a stopped dockerd never return, and such a
process can't even be killed while the kernel holds it. So no part runs in the process that
prints the document: a child that is late is killed and left behind.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Document = dict[str, Any]


class Unavailable(Exception):  # noqa: N818
    """A part can't be read; ``str()`` says why."""


class _Child:
    """A function that runs; ``subject`` is who doesn't answer when it is late."""

    def __init__(self, function: Callable[[], object], deadline: float, subject: str) -> None:
        self.subject = subject
        self.deadline = deadline
        self.answer = bytearray()
        self.started = time.monotonic()
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(writer, function, deadline)
        os.close(writer)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.started + self.deadline - time.monotonic())

    def read(self) -> bool:
        """Take what has come; False when the child has closed its end."""
        data = os.read(self.reader, 1 << 20)
        self.answer += data
        return bool(data)

    def finish(self) -> Document:
        """The answer of a child that has closed its end."""
        os.close(self.reader)
        os.waitpid(self.pid, 0)
        seconds = round(time.monotonic() - self.started, 3)
        try:
            document: Document = json.loads(self.answer)
        except ValueError:
            document = {"ok": False, "error": "the process that reads it ended without an answer"}
        return {**document, "seconds": seconds}

    def abandon(self) -> Document:
        """Kill it with all that it started; reap it if the kernel lets it go."""
        os.close(self.reader)
        # The child may not have become a group of its own yet, or be gone.
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except OSError:
                continue
        for _ in range(20):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
            time.sleep(0.002)
        error = f"{self.subject}: no answer in {self.deadline:g} s"
        return {"ok": False, "error": error, "seconds": self.deadline}


def run_parts(
    functions: Mapping[str, Callable[[], object]],
    deadline: float,
    subjects: Mapping[str, str] | None = None,
) -> Document:
    """Run every function in a child; ``{name: {"ok": …, "value" or "error": …, "seconds": …}}``.

    ``deadline`` is in seconds from the start of each child; ``subjects`` says who doesn't
    answer when a part is late (else its name). Never raises for what a function does, never
    waits longer than the deadline, leaves no child that the kernel lets go.
    """
    children: dict[str, _Child] = {}
    parts: Document = {}
    try:
        for name, function in functions.items():
            children[name] = _Child(function, deadline, (subjects or {}).get(name, name))
        _gather(children, parts)
    finally:
        # Only what interrupts us, a signal for one, leaves children here.
        for child in children.values():
            child.abandon()
    return {name: parts[name] for name in functions}


def _gather(children: dict[str, _Child], parts: Document) -> None:
    """Move every child to ``parts`` when it has answered or is late."""
    poll = select.poll()
    names = {child.reader: name for name, child in children.items()}
    for reader in names:
        poll.register(reader, select.POLLIN)
    while children:
        wait = min(child.left for child in children.values())
        for reader, _ in poll.poll(wait * 1000 + 1):
            if not children[names[reader]].read():
                poll.unregister(reader)
                parts[names[reader]] = children.pop(names[reader]).finish()
        for name in [name for name, child in children.items() if not child.left]:
            poll.unregister(children[name].reader)
            parts[name] = children.pop(name).abandon()


def _be_child(writer: int, function: Callable[[], object], deadline: float) -> NoReturn:
    try:
        # A child that outlives us must not hold the connection open: sshd waits until nobody
        # has its pipes. Its own process group lets it be killed with the commands it started.
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(int(deadline) + 2)  # should the reader be killed meanwhile
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        try:
            document: Document = {"ok": True, "value": function()}
        except Unavailable as error:
            document = {"ok": False, "error": str(error)}
        except BaseException as error:
            document = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        # File names may be bytes that are no UTF-8: they are shown with `?`.
        data = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)
