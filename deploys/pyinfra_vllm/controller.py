"""Who runs a deploy, and from which state of which checkout."""

from __future__ import annotations

import getpass
import socket
import subprocess
from functools import cache
from threading import Lock
from typing import Any

_ONCE = Lock()


def user() -> str:
    """``user@host`` of the controller."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return f"{name}@{socket.gethostname()}"


def about() -> dict[str, Any]:
    """``who``, and ``revision`` and ``dirty`` of the working directory's git checkout.

    Both None outside a checkout, or where there is no git.
    """
    with _ONCE:  # all hosts of a run ask at the same time
        return _about()


@cache
def _about() -> dict[str, Any]:
    revision = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain") if revision else None
    return {
        "who": user(),
        "revision": revision or None,
        "dirty": bool(changes) if changes is not None else None,
    }


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
