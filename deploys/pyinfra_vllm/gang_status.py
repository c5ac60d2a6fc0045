"""How gangs are, rank by rank, as a document for people and machines. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pyinfra_vllm.agent import endings, paths
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.node.models import AgentStatus, Ended, Metrics
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.recipe import ReferencePoint

SCHEMA = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Rank(_Model):
    """One node. ``drift`` None: not known. ``unread``: part of its state -> why it is missing.

    Sizes are bytes; ``gpu`` is what the engine's processes have of the GPU's memory.
    """

    node: str
    rank: int
    reached: bool = True
    unit: str = ""
    phase: str = ""
    detail: str = ""
    container: str = ""
    memory_available: int | None = None
    memory_total: int | None = None
    gpu: int | None = None
    drift: bool | None = None
    unread: dict[str, str] = Field(default_factory=dict)


class Collapse(_Model):
    """The last start that collapsed; ``same``: so many in a row had the same cause."""

    start: int
    at: float
    rank: int | None
    cause: str
    same: int


class Reference(_Model):
    """A reference point of the recipe, in tokens per second of one request."""

    name: str
    prefill: float | None = None
    decode: float | None = None


class GangStatus(_Model):
    """``since`` in Unix seconds; ``trial``: what is on trial; ``drift`` in words where unknown."""

    gang: str
    recipe: str = ""
    release: str | None = None
    start: int | None = None
    phase: str = "unknown"
    since: float | None = None
    detail: str = ""
    note: str = ""
    paused: str = ""
    trial: str = ""
    collapse: Collapse | None = None
    metrics: Metrics | None = None
    references: tuple[Reference, ...] = ()
    drift_unknown: str = ""
    ranks: tuple[Rank, ...] = ()

    @property
    def is_well(self) -> bool:
        """It serves, or somebody has paused it; and every node answers."""
        return self.phase in ("serving", "paused") and all(rank.reached for rank in self.ranks)


class Status(_Model):
    schema_version: int = Field(default=SCHEMA, alias="schema")
    gangs: tuple[GangStatus, ...]

    @property
    def exit_code(self) -> int:
        """0 when all is well, else 1."""
        return 0 if self.gangs and all(gang.is_well for gang in self.gangs) else 1


def recipe_of(gang: str, state: NodeState) -> str:
    """Name of the recipe that a node was last given; empty where that can't be told."""
    return str(_about(state).get("recipe") or "")


def status_of(
    gang: Gang,
    states: Mapping[str, NodeState],
    silent: Mapping[str, str],
    references: Sequence[ReferencePoint] = (),
) -> GangStatus:
    """What the states of its nodes say of a gang; drift is not looked at here."""
    ranks = tuple(_rank(gang.name, node, states, silent) for node in gang.nodes)
    head = states.get(gang.head.name)
    if head is None:
        return GangStatus(gang=gang.name, detail="the head doesn't answer", ranks=ranks)
    agent = _agent(head)
    past = head.past.value_or(None)
    return GangStatus(
        gang=gang.name,
        recipe=recipe_of(gang.name, head),
        release=_release(head),
        start=agent.start if agent else None,
        phase=_phase(head, agent),
        since=agent.since if agent else None,
        detail=agent.detail if agent else "",
        note=agent.note if agent else "",
        paused=agent.detail if agent and agent.phase == "paused" else "",
        trial=past.on_trial if past else "",
        collapse=collapse(past.ended) if past else None,
        metrics=head.metrics.value_or(None),
        references=tuple(_reference(point) for point in references if _is_speed(point)),
        ranks=ranks,
    )


def collapse(ended: Sequence[Ended]) -> Collapse | None:
    """The last start that ended without anybody asking, and how often in a row for that cause."""
    fell = [one for one in ended if not endings.was_asked(one.text)]
    if not fell:
        return None
    last, same = fell[-1], 0
    for one in reversed(fell):
        if (one.rank, _cause(one.text)) != (last.rank, _cause(last.text)):
            break
        same += 1
    return Collapse(start=last.start, at=last.ended, rank=last.rank, cause=last.text, same=same)


def _cause(text: str) -> str:
    """Numbers differ from time to time: seconds, process ids."""
    return re.sub(r"\d+", "N", text)


def _agent(state: NodeState) -> AgentStatus | None:
    agent = state.agent.value_or(None)
    return agent.status if agent else None


def _phase(state: NodeState, agent: AgentStatus | None) -> str:
    unit = state.unit.value_or(None)
    if unit is not None and unit.active not in ("active", "activating", "deactivating"):
        return "not installed" if unit.load == "not-found" else f"unit {unit.active}"
    return agent.phase if agent else "unknown"


def _rank(
    gang: str, node: Node, states: Mapping[str, NodeState], silent: Mapping[str, str]
) -> Rank:
    state = states.get(node.name)
    if state is None:
        why = silent.get(node.name, "it can't be reached")
        return Rank(node=node.name, rank=node.rank, reached=False, detail=why)
    agent, system, unit = _agent(state), state.system.value_or(None), state.unit.value_or(None)
    return Rank(
        node=node.name,
        rank=node.rank,
        unit=unit.active if unit else "?",
        phase=_phase(state, agent),
        detail=agent.detail if agent else "",
        container=_container(gang, state),
        memory_available=system.memory_available if system else None,
        memory_total=system.memory_total if system else None,
        gpu=_gpu(gang, state),
        unread=state.failures(),
    )


def _container(gang: str, state: NodeState) -> str:
    containers = state.containers.value_or(None)
    if containers is None:
        return "?"
    name = paths.container(gang)
    return next((found.state for found in containers if found.name == name), "none")


def _gpu(gang: str, state: NodeState) -> int | None:
    containers, gpus = state.containers.value_or(()), state.gpus.value_or(None)
    ours = {found.id for found in containers if found.name == paths.container(gang)}
    used = [p.memory for p in (gpus.processes if gpus else ()) if p.container_id in ours]
    return sum(memory or 0 for memory in used) if used else None


def _release(state: NodeState) -> str | None:
    folder = state.gang.value_or(None)
    return folder.current_release if folder else None


def _about(state: NodeState) -> dict[str, Any]:
    """``release.json`` of the release that the node started last."""
    folder = state.gang.value_or(None)
    release = folder.releases.get(folder.current_release or "") if folder else None
    found = release.files.get("release.json") if release else None
    try:
        known = json.loads((found and found.text) or "{}")
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _is_speed(point: ReferencePoint) -> bool:
    return bool(point.prefill_tokens_per_second or point.decode_tokens_per_second)


def _reference(point: ReferencePoint) -> Reference:
    return Reference(
        name=point.name,
        prefill=point.prefill_tokens_per_second,
        decode=point.decode_tokens_per_second,
    )
