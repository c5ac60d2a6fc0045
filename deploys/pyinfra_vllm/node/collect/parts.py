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
    def __init__(self, name: str, pid: int, reader: int, started: float) -> None:
        self.name = name
        self.pid = pid
        self.reader = reader
        self.started = started
        self.answer = bytearray()


def run_parts(functions: Mapping[str, Callable[[], object]], deadline: float) -> Document:
    """Run every function in a child; ``{name: {"ok": …, "value" or "error": …, "seconds": …}}``.

    ``deadline`` is in seconds from the start of each child. Never raises for what a
    function does, never waits longer than the deadline, leaves no child that the kernel
    lets go.
    """
    children: dict[int, _Child] = {}
    parts: Document = {}
    try:
        for name, function in functions.items():
            child = _start(name, function, deadline)
            children[child.reader] = child
        _gather(children, parts, deadline)
    finally:
        # Only what interrupts us, a signal for one, leaves children here.
        for child in children.values():
            _abandon(child, deadline)
    return {name: parts[name] for name in functions}


def _gather(children: dict[int, _Child], parts: Document, deadline: float) -> None:
    """Move every child to ``parts`` when it has answered or is late."""
    poll = select.poll()
    for reader in children:
        poll.register(reader, select.POLLIN)
    while children:
        ends = min(child.started for child in children.values()) + deadline
        wait = max(0.0, ends - time.monotonic())
        for reader, _ in poll.poll(wait * 1000 + 1):
            child = children[reader]
            if not _read(child):
                poll.unregister(reader)
                parts[child.name] = _finish(children.pop(reader))
        for child in [c for c in children.values() if time.monotonic() - c.started >= deadline]:
            poll.unregister(child.reader)
            parts[child.name] = _abandon(children.pop(child.reader), deadline)


def _start(name: str, function: Callable[[], object], deadline: float) -> _Child:
    reader, writer = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(writer, function, deadline)
    os.close(writer)
    return _Child(name, pid, reader, started)


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


def _read(child: _Child) -> bool:
    """Take what has come; False when the child has closed its end."""
    data = os.read(child.reader, 1 << 20)
    child.answer += data
    return bool(data)


def _finish(child: _Child) -> Document:
    os.close(child.reader)
    os.waitpid(child.pid, 0)
    seconds = round(time.monotonic() - child.started, 3)
    try:
        document: Document = json.loads(child.answer)
    except ValueError:
        document = {"ok": False, "error": "the process that reads it ended without an answer"}
    return {**document, "seconds": seconds}


def _abandon(child: _Child, deadline: float) -> Document:
    os.close(child.reader)
    for kill in (os.killpg, os.kill):
        # The child may not have become a group of its own yet, or be gone.
        try:
            kill(child.pid, signal.SIGKILL)
        except OSError:
            continue
    for _ in range(20):
        if os.waitpid(child.pid, os.WNOHANG)[0]:
            break
        time.sleep(0.002)
    return {"ok": False, "error": f"no answer in {deadline:g} s", "seconds": deadline}
