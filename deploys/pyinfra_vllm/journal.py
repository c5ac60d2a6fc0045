"""The journals of several nodes as one, and the start that failed first. Pure."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra_vllm.agent import paths

LINES = 200
"""Lines of each rank that are shown unless said otherwise."""


@dataclass(frozen=True)
class Entry:
    """``at``: Unix seconds of the node's clock."""

    at: float
    rank: int
    text: str

    @property
    def line(self) -> str:
        """``02:14:07.123 rank 0 | text``."""
        whole = time.strftime("%H:%M:%S", time.localtime(self.at))
        return f"{whole}.{int(self.at * 1000) % 1000:03} rank {self.rank} | {self.text}"


def command(gang: str, since: str | None, lines: int | None, follow: bool) -> str:
    """The command that prints a node's journal: JSON, or text where it is followed."""
    words = ["journalctl", "--quiet", "--no-pager", "--unit", paths.unit(gang)]
    words += ["--output", "short-precise" if follow else "json"]
    words += ["--since", since] if since else []
    words += ["--lines", str(lines)] if lines is not None else []
    words += ["--follow"] if follow else []
    return shlex.join(words)


def entries(rank: int, lines: Iterable[str]) -> Iterator[Entry]:
    """What ``journalctl --output json`` printed; what isn't such a line is left out."""
    for line in lines:
        try:
            found = json.loads(line)
            at = int(found["__REALTIME_TIMESTAMP"]) / 1e6
        except (ValueError, KeyError, TypeError):
            continue
        yield from (Entry(at, rank, text) for text in _message(found).splitlines())


def _message(found: Mapping[str, Any]) -> str:
    message = found.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no UTF-8, or have control characters
        return bytes(int(byte) & 255 for byte in message).decode(errors="replace")
    return str(message or "")


def interleaved(journals: Iterable[Iterable[Entry]]) -> list[Entry]:
    """All lines by time; those of one rank keep their order."""
    return sorted((entry for journal in journals for entry in journal), key=lambda e: e.at)


def last_evidence(gang: str) -> str:
    """The command that prints what a node has kept of the last start that ended there."""
    folder = paths.evidence(gang)
    return f'cat {folder}/"$(ls -t {folder} 2>/dev/null | head -n 1)" 2>/dev/null || true'


def first_failure(documents: Mapping[int, str], names: Mapping[int, str]) -> list[str]:
    """The last lines of the rank that went first in the last start that ended.

    ``documents``: rank -> what :func:`last_evidence` printed there. ``names``: of the nodes.
    """
    known = {rank: found for rank, text in documents.items() if (found := _object(text))}
    if not known:
        return ["no start has ended yet, or nobody has kept how"]
    start = max(int(found.get("start") or 0) for found in known.values())
    told = next(found for found in known.values() if found.get("start") == start)
    first = told.get("first") or {}
    rank = int(first.get("rank") or 0)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(told.get("ended") or 0)))
    code = first.get("exit_code")
    exit_code = f", exit code {code}" if code is not None else ""
    head = (
        f"start {start} ended {when}; rank {rank} ({names.get(rank, '?')}) went first{exit_code}:"
    )
    own = known.get(rank, {})
    if own.get("start") != start:
        return [head, f"  {first.get('text')}", "  (it has kept nothing of that start itself)"]
    request = own.get("last_request")
    asked = [f"  the last request was {request}"] if request else []
    lines = [f"  {line}" for line in own.get("lines") or []]
    return [head, f"  {first.get('text')}", *asked, "its last lines:", *lines]


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
