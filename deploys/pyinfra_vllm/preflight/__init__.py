"""What must hold on the nodes before anything is changed: a table of named checks. Pure.

A check is ``ok``, ``warn``, ``fail`` (it stops the deploy) or ``unknown`` (the node can't
tell). The inventory waives a check by name (``vllm_waive``); it is then still shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from pyinfra_vllm.check_names import NAMES
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import Build
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.preflight import gang as of_gang
from pyinfra_vllm.preflight.finding import Check, Finding, Place, Results, Subject, unknown
from pyinfra_vllm.preflight.report import lines, summary
from pyinfra_vllm.preflight.table import FIRST, GANG, NODE
from pyinfra_vllm.recipe import Recipe

__all__ = [
    "NAMES",
    "Finding",
    "Subject",
    "findings",
    "lines",
    "problems",
    "revisions_of",
    "summary",
]

T = TypeVar("T", Place, Subject)


def findings(
    recipe: Recipe,
    gang: Gang,
    build: Build | None,
    states: Mapping[str, NodeState],
    stops: tuple[str, ...] = (),
    alone: bool = True,
) -> list[Finding]:
    """What every check found, node by node in rank order, then for the gang.

    ``states`` are those of the nodes that answered. ``stops``: containers and units of others
    that are stopped right before the switch; that they are in the way stops nothing. ``alone``:
    the inventory has no other gang, whose they could be.
    """
    read = {name: state for name, state in states.items() if not state.assumed}
    subject = Subject(recipe, gang, build, read, stops, alone)
    found = [_NOT_READ.at(name) for name in states if name not in read]
    found += [finding for place in subject.places for finding in _on_node(place)]
    if read and not any(finding.check in _FIRST and finding.status == "fail" for finding in found):
        found += [finding for check in GANG for finding in _on_gang(check, subject)]
    return [_waived(finding, gang) for finding in found]


def problems(
    recipe: Recipe, gang: Gang, build: Build | None, states: Mapping[str, NodeState]
) -> list[str]:
    """Sentences that say what stops the deploy: node, fact, remedy. Empty: nothing does."""
    found = findings(recipe, gang, build, states)
    return [finding.sentence for finding in found if finding.status == "fail"]


def revisions_of(recipe: Recipe, gang: Gang, states: Mapping[str, NodeState]) -> dict[str, str]:
    """Commit of every repository of the model, the same on all nodes that answered.

    UserError when a repository is on no node or its revisions differ.
    """
    return of_gang.revisions(Subject(recipe, gang, None, states))


_NOT_READ = Finding(
    "unknown", "its state is not known, and nothing is checked", check="state", source="no node"
)
_FIRST = {check.name for check in FIRST}


def _on_node(place: Place) -> Iterator[Finding]:
    for check in FIRST:
        results = list(_results(check, place))
        yield from results
        if any(result.status == "fail" for result in results):
            return
    for check in NODE:
        yield from _results(check, place)


def _results(check: Check, place: Place) -> Iterator[Finding]:
    assert check.on_node is not None
    why = _unreadable(check, place)
    results = [unknown(why)] if why else _safely(check.on_node, place)
    for result in results:
        yield replace(result, check=check.name, source=check.source, node=place.node.name)


def _on_gang(check: Check, subject: Subject) -> Iterator[Finding]:
    assert check.on_gang is not None
    reasons = [f"{p.node.name}: {why}" for p in subject.places if (why := _unreadable(check, p))]
    results = [unknown("; ".join(reasons))] if reasons else _safely(check.on_gang, subject)
    for result in results:
        yield replace(result, check=check.name, source=check.source)


def _safely(function: Callable[[T], Results], subject: T) -> list[Finding]:
    """What a check finds; unknown when it needs a part, of another node say, that is missing."""
    try:
        return list(function(subject))
    except UserError as error:
        return [unknown(str(error))]


def _unreadable(check: Check, place: Place) -> str:
    failures = place.state.failures()
    return "; ".join(f"{part}: {failures[part]}" for part in check.parts if part in failures)


def _waived(finding: Finding, gang: Gang) -> Finding:
    """A finding on a node is waived by that node; one of the gang by any of its nodes."""
    if finding.status == "ok":
        return finding
    waiving = [node for node in gang.nodes if finding.check in node.waive]
    if any(finding.node in ("", node.name) for node in waiving):
        return replace(finding, status="waived")
    return finding
