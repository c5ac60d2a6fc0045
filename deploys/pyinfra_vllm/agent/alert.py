"""When a person should hear of it, and how: the inventory's alert command."""

from __future__ import annotations

import os
import subprocess

from . import pace
from .events import Moment
from .jobs import Say
from .state import State

PATIENCE = pace.seconds(900.0)
"""Seconds of waiting that nobody needs to hear of."""
_SECONDS = 60.0


class Alerts:
    """Says each thing once. A worker that is connected leaves it to the head."""

    def __init__(self) -> None:
        self._waiting_since: float | None = None
        self._said: set[str] = set()

    def due(self, state: State, was_broken: bool, now: Moment) -> tuple[str, str] | None:
        """Kind and message of what is to be said now."""
        kind = self._kind(state, was_broken, now)
        if kind is None or kind in self._said:
            return None
        self._said.add(kind)
        return kind, f"{kind}: {state.detail}"

    def _kind(self, state: State, was_broken: bool, now: Moment) -> str | None:
        if state.phase not in ("waiting", "preparing"):
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = now.steady
        if not state.tether.is_head and state.tether.heard[0] is not None:
            return None
        if state.phase == "failed" and state.tether.stage != "ending":
            return "failed"
        if state.phase == "serving" and (was_broken or self._said):
            return "serving"
        if self._waiting_since is not None and now.steady - self._waiting_since > PATIENCE:
            return "waiting"
        return None


def tell(command: str, gang: str, kind: str, message: str, say: Say) -> None:
    """The job: runs the command with ``PYINFRA_VLLM_{GANG,EVENT,MESSAGE}`` in its environment."""
    about = {
        "PYINFRA_VLLM_GANG": gang,
        "PYINFRA_VLLM_EVENT": kind,
        "PYINFRA_VLLM_MESSAGE": message,
    }
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={**os.environ, **about},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        say(note=f"the alert command took more than {_SECONDS:.0f} s")
        return
    how = "was run" if done.returncode == 0 else f"failed with code {done.returncode}"
    say(note=f"the alert command {how} ({kind})")
