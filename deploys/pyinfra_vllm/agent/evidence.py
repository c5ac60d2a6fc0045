"""What is kept of the last starts, outside the containers: last lines, codes, who went first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from typing import Any

from . import paths
from .jobs import Say
from .last_request import is_access, last_request

KEPT = 10
"""Starts of which evidence is kept."""
_LINES = 60
_WIDTH = 500
_SECONDS = 5.0
_SEARCHED = 1000
"""Lines in which the last request is looked for: tracebacks of many processes follow it."""


def keep(gang: str, about: dict[str, Any]) -> None:
    """Write one file for the start that ``about`` tells of, and remove the oldest."""
    lines = last_lines(most=_SEARCHED)
    kept = [line[:_WIDTH] for line in lines[-_LINES:]]
    document = {"schema": 1, **about, "last_request": last_request(lines), "lines": kept}
    folder = paths.here(paths.evidence(gang))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / f"start-{about['start']:06d}-{about['nonce'][:8]}.json").write_text(
        json.dumps(document, indent=1) + "\n", encoding="utf-8"
    )
    files = sorted(folder.glob("start-*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[:-KEPT]:
        path.unlink()


def last_lines(form: str = "cat", most: int = _LINES) -> list[str]:
    """The last lines that this run of the unit has left in the journal, in journalctl's form."""
    invocation = os.environ.get("INVOCATION_ID", "")
    if not invocation:
        return []
    argv = [
        "journalctl", "--no-pager", "--quiet",
        "--output", form,
        "--lines", str(most),
        f"_SYSTEMD_INVOCATION_ID={invocation}",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


AGENT_LINE = "^(preparing|waiting|paused|starting|serving|failed|stopping|start [0-9]+): "
"""What the agent says of itself in the journal, beside the engine's own lines."""


def quiet(say: Say) -> None:
    """The job: says ``{"quiet": seconds}`` since the engine's last line in this run of the unit."""
    at = last_told(last_lines("short-unix"))
    say(quiet=None if at is None else max(0.0, time.time() - at))


def last_told(lines: list[str]) -> float | None:
    """Unix seconds of the engine's last own line; that it was asked something is none.

    ``lines``: as ``journalctl --output short-unix`` prints them.
    """
    for line in reversed(lines):
        words = line.split(" ", 3)
        if len(words) == 4 and not re.match(AGENT_LINE, words[3]) and not is_access(line):
            try:
                return float(words[0])
            except ValueError:
                continue
    return None
