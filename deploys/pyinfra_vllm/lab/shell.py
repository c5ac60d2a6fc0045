"""Commands on this machine, steps with seconds, locks."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab.layout import LOCKS

_SHOWN_LINES = 12


def run(argv: Sequence[str | Path], stdin: str | IO[bytes] | None = None) -> str:
    """Standard output of ``argv``; a UserError with its last lines when it fails."""
    done = attempt(argv, stdin)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_SHOWN_LINES:]
        command = " ".join(str(word) for word in argv[:8])
        raise UserError(
            f"command failed with code {done.returncode}: {command}\n"
            + "\n".join(f"  {line}" for line in said)
        )
    return done.stdout


def attempt(
    argv: Sequence[str | Path], stdin: str | IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``argv`` to its end, whatever the exit code; without input stdin is empty."""
    words = [str(word) for word in argv]
    if isinstance(stdin, str):
        return subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    return subprocess.run(
        words, stdin=stdin or subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def say(text: str) -> None:
    print(text, flush=True)


def note(text: str) -> None:
    """Print ``text`` under the texts of the steps."""
    say(f"{'':11}{text}")


class Steps:
    """Prints each step at its end with the seconds it took."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        say(f"{time.monotonic() - began:7.1f} s  {text}")

    def total(self, text: str) -> None:
        say(f"{time.monotonic() - self._began:7.1f} s  {text}")


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the machine-wide lock ``name``; says so when it has to wait for another command."""
    LOCKS.mkdir(parents=True, exist_ok=True)
    with open(LOCKS / f"pyinfra-vllm-lab.{name}", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"waiting for another command that works on {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write ``text`` to ``path`` by rename, folders included, with exactly ``mode``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.touch(0o600)
    beside.write_text(text)
    beside.chmod(mode)
    beside.replace(path)
