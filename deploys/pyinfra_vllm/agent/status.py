"""The status file: what the agent says of itself, for people and for the controller."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Phase = Literal["preparing", "waiting", "paused", "starting", "serving", "failed", "stopping"]


@dataclass(frozen=True)
class Failure:
    """An engine that started and died. ``at``: Unix seconds; ``code``: its exit code."""

    at: float
    code: int
    release: str
    detail: str


@dataclass(frozen=True)
class Status:
    """``since`` and ``engine_started`` are Unix seconds; ``agent`` is the sha256 of the archive.

    ``start``: number of the gang's start that this rank is in.
    Of the head only: ``switch``, the number of the wish it has seen; ``passed``, the
    release that served last; ``note``, that the head went back, and why.
    ``last_failure`` outlives the agent and a later success; a stop that was asked
    for, and a boot, forget it.
    """

    agent: str
    pid: int
    gang: str
    release: str | None
    rank: int | None
    phase: Phase
    since: float
    detail: str
    engine_started: float | None
    last_failure: Failure | None
    start: int | None = None
    switch: int = 0
    passed: str = ""
    note: str = ""

    def document(self) -> dict[str, Any]:
        """The JSON document of the status file."""
        return {"schema": 1, **asdict(self)}


def write(path: Path, status: Status) -> None:
    """Replace the status file by rename, so that a reader never sees half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(status.document(), indent=1) + "\n", encoding="utf-8")
    fresh.chmod(0o644)
    fresh.rename(path)


def read(path: Path) -> dict[str, Any] | None:
    """The document of the status file, or None when there is none that can be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def last_failure(path: Path) -> Failure | None:
    """The last failure that an earlier run of the agent left in the status file."""
    failure = (read(path) or {}).get("last_failure")
    if not isinstance(failure, dict):
        return None
    try:
        return Failure(
            at=float(failure["at"]),
            code=int(failure["code"]),
            release=str(failure["release"]),
            detail=str(failure["detail"]),
        )
    except (TypeError, KeyError, ValueError):
        return None


def runs(document: dict[str, Any]) -> bool:
    """Whether the agent that wrote the document is still alive."""
    pid = document.get("pid")
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
