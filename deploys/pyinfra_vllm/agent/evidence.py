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

KEPT = 10
"""Starts of which evidence is kept."""
_LINES = 60
_SECONDS = 5.0
_REQUEST = re.compile(r'"(?:GET|POST|PUT|DELETE) (/[^ "]*) HTTP')
_NOT_A_REQUEST = ("/health", "/metrics", "/v1/models", "/ping")


def keep(gang: str, about: dict[str, Any]) -> None:
    """Write one file for the start that ``about`` tells of, and remove the oldest."""
    lines = last_lines()
    document = {"schema": 1, **about, "last_request": last_request(lines), "lines": lines}
    folder = paths.here(paths.evidence(gang))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / f"start-{about['start']:06d}-{about['nonce'][:8]}.json").write_text(
        json.dumps(document, indent=1) + "\n", encoding="utf-8"
    )
    files = sorted(folder.glob("start-*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[:-KEPT]:
        path.unlink()


def last_lines(form: str = "cat") -> list[str]:
    """The last lines that this run of the unit has left in the journal, in journalctl's form."""
    invocation = os.environ.get("INVOCATION_ID", "")
    if not invocation:
        return []
    argv = [
        "journalctl", "--no-pager", "--quiet",
        "--output", form,
        "--lines", str(_LINES),
        f"_SYSTEMD_INVOCATION_ID={invocation}",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line[:500] for line in done.stdout.splitlines()]


AGENT_LINE = "^(preparing|waiting|paused|starting|serving|failed|stopping|start [0-9]+): "
"""What the agent says of itself in the journal, beside the engine's own lines."""


def quiet(say: Say) -> None:
    """The job: says ``{"quiet": seconds}`` since the engine's last line in this run of the unit."""
    lines = [line.split(" ", 3) for line in last_lines("short-unix")]
    told = [words for words in lines if len(words) == 4 and not re.match(AGENT_LINE, words[3])]
    try:
        say(quiet=max(0.0, time.time() - float(told[-1][0])))
    except (IndexError, ValueError):
        say(quiet=None)


def last_request(lines: list[str]) -> str | None:
    """The kind of the last request that the access log names; looks at health are none."""
    for line in reversed(lines):
        found = _REQUEST.search(line)
        if found and not found[1].startswith(_NOT_A_REQUEST):
            return found[1]
    return None
