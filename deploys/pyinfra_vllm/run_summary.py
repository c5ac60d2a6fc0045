"""What one run did, in a few lines: what changed where, what was restarted, and how long. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyinfra_vllm.consequences import Consequence

_WORTH_SAYING = 1.0
_WIDTH = 12


@dataclass
class Stage:
    """One operation over all hosts. ``seconds``: until the last of them had ended it."""

    name: str
    seconds: float = 0.0
    consequence: Consequence = "staging"
    changed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Served:
    """A gang of this run, and where its API is once it serves."""

    gang: str
    recipe: str
    release: str
    url: str
    head: str
    nodes: frozenset[str]


def lines(
    stages: Sequence[Stage],
    gangs: Sequence[Served],
    seconds: float,
    standings: Mapping[str, str] | None = None,
) -> list[str]:
    """The summary of a run that took ``seconds``.

    ``standings``: gang -> why it doesn't serve, as far as the run knows.
    """
    known = standings or {}
    found = [_gang(stages, gang, known.get(gang.gang, "")) for gang in gangs]
    changed = [
        f"{stage.name} ({_names(stage.changed)})"
        for stage in stages
        if stage.changed and stage.consequence != "watch"
    ]
    found += _listed("changed", changed or ["nothing"])
    slow = sorted(
        (stage for stage in stages if stage.seconds >= _WORTH_SAYING),
        key=lambda stage: -stage.seconds,
    )
    took = [f"{stage.seconds:.0f} s {stage.name}" for stage in slow[:5]]
    found += _listed("took", [f"{seconds:.1f} s in all", *took])
    return found


def _gang(stages: Sequence[Stage], gang: Served, standing: str) -> str:
    what = f"gang {gang.gang}: {gang.recipe}, release {gang.release[:12]}"
    failed = {host for stage in stages for host in stage.failed} & gang.nodes
    if failed:
        first = next(stage for stage in stages if stage.failed & gang.nodes)
        return f"{what}: failed at {first.name} ({_names(first.failed & gang.nodes)})"
    if standing:
        return f"{what}: {standing}"
    switched = any(stage.changed & gang.nodes for stage in stages if stage.consequence == "restart")
    return f"{what}, {'restarted' if switched else 'not restarted'}: {gang.url}"


def _listed(title: str, items: Sequence[str]) -> list[str]:
    first, *rest = items
    return [f"{title:{_WIDTH}}{first}", *(f"{'':{_WIDTH}}{item}" for item in rest)]


def _names(hosts: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(hosts))
