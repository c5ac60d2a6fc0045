"""The journals of several nodes as one, and the start that failed first. Pure."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra_vllm.agent import endings, paths

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


def evidence(gang: str) -> str:
    """The command that prints what a node has kept of the last starts, a document a line."""
    folder = shlex.quote(paths.evidence(gang))
    return f"for file in {folder}/*; do tr -d '\\n' < \"$file\" && echo; done 2>/dev/null || true"


def first_failure(printed: Mapping[int, Iterable[str]], names: Mapping[int, str]) -> list[str]:
    """The last lines of the rank that went first in the last start that failed.

    ``printed``: rank -> what :func:`evidence` printed there. ``names``: of the nodes.
    """
    known = _last_that_failed(printed)
    if not known:
        return ["no start has failed yet, or nobody has kept how"]
    told = known[min(known)]
    start, first = told.get("start"), told.get("first") or {}
    rank = int(first.get("rank") or 0)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(told.get("ended") or 0)))
    code = first.get("exit_code")
    exit_code = f", exit code {code}" if code is not None else ""
    head = (
        f"start {start} ended {when}; rank {rank} ({names.get(rank, '?')}) went first{exit_code}:"
    )
    own = known.get(rank)
    if own is None:
        return [head, f"  {first.get('text')}", "  (it has kept nothing of that start itself)"]
    request = own.get("last_request")
    asked = [f"  the last request was {request}"] if request else []
    lines = [f"  {line}" for line in own.get("lines") or []]
    return [head, f"  {first.get('text')}", *asked, "its last lines:", *lines]


def _last_that_failed(printed: Mapping[int, Iterable[str]]) -> dict[int, dict[str, Any]]:
    """What each rank has kept of that start; one that was asked to end has not failed."""
    starts: dict[object, dict[int, dict[str, Any]]] = {}
    for rank, lines in printed.items():
        for found in filter(None, map(_object, lines)):
            # The number alone begins anew where the head has moved.
            starts.setdefault((found.get("start"), found.get("nonce")), {})[rank] = found
    failed = [kept for kept in starts.values() if not any(map(_was_asked, kept.values()))]
    return max(failed, key=lambda kept: max(map(_ended, kept.values())), default={})


def _was_asked(found: Mapping[str, Any]) -> bool:
    return endings.was_asked(str((found.get("first") or {}).get("text")))


def _ended(found: Mapping[str, Any]) -> float:
    return float(found.get("ended") or 0)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
