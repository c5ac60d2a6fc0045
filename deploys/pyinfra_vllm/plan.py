"""The plan: what a deploy would change, as a document for people and machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pyinfra_vllm.consequences import Consequence

SCHEMA = 1

NOTHING, ERROR, CHANGES = 0, 1, 2
"""Exit codes of ``pyinfra-vllm plan``."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Line(_Model):
    """What an operation says of a change: a sentence, or the diff of one file."""

    kind: Literal["text", "diff"]
    text: str


class Change(_Model):
    """One operation that would do the same on ``nodes``. ``key``: its module and function."""

    operation: str
    key: str
    consequence: Consequence
    nodes: tuple[str, ...]
    lines: tuple[Line, ...] = ()


class Found(_Model):
    """A finding of the preflight; ``node`` empty: of the gang as a whole."""

    status: str
    check: str
    node: str
    sentence: str


class Outage(_Model):
    """Expected seconds without service; ``source`` says from what they are known."""

    seconds: float
    source: str


class GangPlan(_Model):
    """``release`` is what the recipe asks for, None when it can't be computed.

    ``wanted`` is what the head is asked to serve now, ``state`` how the gang is. ``error``:
    why a deploy would refuse. ``nodes``: those that the plan is for.
    """

    gang: str
    nodes: tuple[str, ...] = ()
    recipe: str = ""
    release: str | None = None
    wanted: str | None = None
    state: str = ""
    error: str = ""
    changes: tuple[Change, ...] = ()
    findings: tuple[Found, ...] = ()
    outage: Outage | None = None

    def of(self, consequence: Consequence) -> tuple[Change, ...]:
        """Changes of one consequence, in the order of the deploy."""
        return tuple(change for change in self.changes if change.consequence == consequence)

    @property
    def real_changes(self) -> tuple[Change, ...]:
        """Changes that a node would notice."""
        return tuple(change for change in self.changes if change.consequence != "watch")


class Plan(_Model):
    """``unknown``: node -> why it can't be read. ``notes``: what was said while looking.

    ``limit``: hosts, patterns or groups that the plan was limited to; empty: to none.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    inventory: str
    recipe: str
    limit: tuple[str, ...] = ()
    gangs: tuple[GangPlan, ...] = ()
    unknown: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 nothing to do, 2 changes, 1 when a part of the answer is missing or is no."""
        if self.unknown or not self.gangs or any(gang.error for gang in self.gangs):
            return ERROR
        return CHANGES if any(gang.real_changes for gang in self.gangs) else NOTHING

    @property
    def verdict(self) -> str:
        """The plan in one line."""
        changes = [change for gang in self.gangs for change in gang.real_changes]
        nodes = {node for change in changes for node in change.nodes}
        said = f"{_count(len(changes), 'change')} on {_count(len(nodes), 'node')}"
        if not changes:
            said = "nothing to do"
        errors = sum(bool(gang.error) for gang in self.gangs)
        refused = ["a deploy refuses"] * bool(errors)
        unknown = [f"unknown: {', '.join(self.unknown)}"] * bool(self.unknown)
        limit = [f"nothing was looked for beyond --limit {','.join(self.limit)}"] * bool(self.limit)
        if (refused or unknown) and not changes:
            return "; ".join([*refused, *unknown, *limit])
        return "; ".join([said, *refused, *unknown, *limit])


def together(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes with the nodes joined for which an operation does and says the same."""
    found: dict[tuple[object, ...], Change] = {}
    for change in changes:
        same = (change.key, change.operation, change.lines)
        known = found.get(same)
        nodes = (*known.nodes, *change.nodes) if known else change.nodes
        found[same] = change.model_copy(update={"nodes": nodes})
    return tuple(found.values())


def said(lines: Iterable[Line], kind: str) -> Iterator[str]:
    """The texts of one kind."""
    return (line.text for line in lines if line.kind == kind)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
