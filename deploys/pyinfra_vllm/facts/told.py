"""What operations say of their changes while a run prepares, kept for who asks for it.

Without a listener they say it to the log, where ``--diff`` is set; with one they say it to the
listener. So a plan has the words of the very operations that would make the changes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from pyinfra.api import State

from pyinfra_vllm.plan import Line
from pyinfra_vllm.preflight.finding import Finding


class Told:
    """``findings``: gang -> what its preflight found, worst and best."""

    def __init__(self) -> None:
        self.findings: dict[str, list[Finding]] = {}
        self._key = ""
        self._lines: list[Line] = []

    def begins(self, key: str) -> None:
        """The operation of this module and function speaks from now on."""
        self._key, self._lines = key, []

    def hears(self, message: str) -> None:
        """A sentence about the change."""
        self._lines.append(Line(kind="text", text=message))

    def hears_diff(
        self, path: str, current: str | None, desired: str, before: str | None = None
    ) -> None:
        """A file that would be other; a new one is compared with ``before``, if anything."""
        self._lines.append(Line(kind="diff", text=diff(path, current, desired, before)))

    def taken(self) -> tuple[str, tuple[Line, ...]]:
        """Key and lines of the operation that spoke last; both are forgotten."""
        found = self._key, tuple(self._lines)
        self._key, self._lines = "", []
        return found


_LISTENERS: WeakKeyDictionary[State, Told] = WeakKeyDictionary()


def listen(state: State) -> Told:
    """Keep what is said in the run of ``state`` from now on."""
    return _LISTENERS.setdefault(state, Told())


def to(state: State) -> Told | None:
    """Who listens to the run; None when nobody does. ``state`` is that of a host."""
    return _LISTENERS.get(state)


def found(state: State, gang: str, findings: Iterable[Finding]) -> None:
    """The preflight of a gang is made."""
    listener = to(state)
    if listener is not None:
        listener.findings[gang] = list(findings)


def diff(path: str, current: str | None, desired: str, before: str | None = None) -> str:
    """A unified diff whose first line names the file; of one that is new, how long it is."""
    known = current if current is not None else before
    if known is None:
        return f"--- {path} (new, {len(desired.splitlines())} lines)"
    lines = difflib.unified_diff(
        known.splitlines(), desired.splitlines(), path, path, n=2, lineterm=""
    )
    what = "changed" if current is not None else "new; compared with what is wanted now"
    return "\n".join([f"--- {path} ({what})", *list(lines)[2:]])
