"""The engine's process: the docker client that runs its container."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable

from . import paths, secret_values
from .errors import Unmet
from .events import Event, Exited


class Engine:
    """At most one process in a run of the agent. ``code``: how it exited, None before that."""

    def __init__(self, gang: str, log: Callable[[str], None]) -> None:
        self._gang = gang
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.code: int | None = None

    @property
    def was_started(self) -> bool:
        """Whether there is, or was, a process."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """Of the process while it runs."""
        return self._process.pid if self._process and self.code is None else None

    def start(self, argv: tuple[str, ...], number: int) -> list[Event]:
        """Start it, for the start of that number; the exit that stands for one that can't be."""
        argv = (*argv[:2], "--label", f"{paths.LABEL_START}={number}", *argv[2:])
        self._log(f"start {number}: " + shlex.join(argv))
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=secret_values.environ(self._gang, argv),
            )
        except OSError as error:
            self._log(f"{argv[0]}: {os.strerror(error.errno or 0)}")
            return [Exited(127)]
        except Unmet as unmet:
            self._log(str(unmet))
            return [Exited(127)]
        return []

    def exited(self) -> list[Event]:
        """Its exit, once."""
        if self._process is None or self.code is not None:
            return []
        code = self._process.poll()
        if code is None:
            return []
        self.code = code if code >= 0 else 128 - code
        return [Exited(self.code)]

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
