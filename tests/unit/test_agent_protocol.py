"""The protocol between the ranks, searched through: every order of events, with faults anywhere.

A head and two workers, engines that die slowly, power cuts, crashes, hanging agents, cut
connections, late beats, lost messages, preconditions that break, a switch and a pause.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import agent_protocol as world_of
from agent_protocol import OPTIONAL, Rules, World
from pyinfra_vllm.agent.naming import missing

SOUND = Rules()
NAMES = ("rank 0", "rank 1", "rank 2")


@dataclass
class Search:
    """All that can be reached. ``edges``: fault-free steps, as numbers of states."""

    seen: dict[World, int] = field(default_factory=dict)
    edges: list[tuple[int, ...]] = field(default_factory=list)
    steps: int = 0
    ends: dict[str, int] = field(default_factory=dict)

    def number(self, world: World, todo: list[World]) -> int:
        known = self.seen.get(world)
        if known is None:
            known = self.seen[world] = len(self.seen)
            todo.append(world)
        return known


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Millions of small values without cycles: looking for some costs a third of the time."""
    gc.disable()
    yield
    gc.enable()
    world_of.step.cache_clear()
    world_of.says.cache_clear()


def search(faults: int, first: World, rules: Rules = SOUND) -> Search:
    """Go everywhere that at most ``faults`` faults lead; fail at the first broken promise.

    States are taken in the order of the faults that they need, so that none is looked
    at twice, and one that was reached with fewer faults stands for all.
    """
    found = Search()
    layer = [first]
    for left in range(faults, -1, -1):
        todo: list[World] = []
        for world in layer:
            found.number(world, todo)
        layer = []
        for world in todo:
            found.edges.append(_steps(found, world, todo, rules))
            if left:
                for _, after in world_of.faults(world, rules):
                    found.steps += 1
                    after = world_of.canonical(after)
                    if after not in found.seen:
                        layer.append(after)
    return found


def _steps(found: Search, world: World, todo: list[World], rules: Rules) -> tuple[int, ...]:
    starts = {node.engine for node in world.nodes if node.engine}
    assert len(starts) < 2, f"engines of two starts: {world}"
    must = False
    edges = []
    for what, after in world_of.steps(world, rules):
        found.steps += 1
        must = must or not what.endswith(OPTIONAL)
        edges.append(found.number(world_of.canonical(after), todo))
    if not must:
        end = _end(world)
        found.ends[end] = found.ends.get(end, 0) + 1
    return tuple(edges)


def _end(world: World) -> str:
    """Which of the two good ends this is; fails when it is none."""
    if all(node.engine for node in world.nodes):
        agents = [node.agent for node in world.nodes]
        assert {agent.stage for agent in agents if agent} == {"running"}, world
        assert {agent.wanted for agent in agents if agent} == {world.wish}, world
        return "serving"
    assert not any(node.engine for node in world.nodes), f"a rank of a start that is gone: {world}"
    for rank, node in enumerate(world.nodes):
        if node.agent is not None:
            assert node.agent.stage == "assembling", world
            said = missing(node.agent, NAMES) or node.agent.hold
            assert said, f"rank {rank} doesn't know what it waits for: {world}"
    _check_names(world)
    return "waiting"


def _check_names(world: World) -> None:
    """The head names exactly the ranks that are away or lack something."""
    head = world.nodes[0].agent
    if head is None:
        return
    said = missing(head, NAMES)
    for rank in (1, 2):
        node = world.nodes[rank]
        is_short = node.agent is None or not node.agent.ready
        assert (NAMES[rank] in said) == is_short, (said, world)


def endless(edges: list[tuple[int, ...]]) -> int:
    """How many states lie on or behind a circle of fault-free steps: a run with no end."""
    waits = [0] * len(edges)
    for targets in edges:
        for target in targets:
            waits[target] += 1
    free = [number for number, count in enumerate(waits) if not count]
    left = len(edges)
    while free:
        left -= 1
        for target in edges[free.pop()]:
            waits[target] -= 1
            if not waits[target]:
                free.append(target)
    return left


def _check(faults: int, rules: Rules = SOUND, releases: str = "AB") -> None:
    found = search(faults, world_of.new(releases), rules)
    assert endless(found.edges) == 0
    assert set(found.ends) == {"serving", "waiting"} if faults else {"serving"}
    print(f"{faults} faults: {len(found.seen)} states, {found.steps} steps, ends: {found.ends}")


def test_every_run_with_three_faults_ends_in_one_start_or_with_the_missing_named() -> None:
    _check(3, Rules(breaks=False))


def test_agents_that_hang_and_preconditions_that_break_change_nothing_of_that() -> None:
    _check(2)


def test_a_rank_that_lacks_the_next_release_is_named() -> None:
    _check(1, releases="A")


@pytest.mark.parametrize("releases", ["AB", "A"])
def test_a_switch_that_the_head_takes_back_ends_well_with_another_fault_too(releases: str) -> None:
    """Also when it takes it back in the middle of anything, or because a rank lacks it."""
    _check(2 if releases == "A" else 1, Rules(breaks=False, tries=True), releases)


def test_without_beats_while_assembling_the_gang_would_hang() -> None:
    silent = Rules(beats=lambda agent: agent.stage != "assembling")
    with pytest.raises(AssertionError, match=r"doesn.t know what it waits for"):
        search(2, world_of.new(), silent)


@pytest.mark.soak
@pytest.mark.parametrize("releases", ["AB", "A"])
def test_every_run_with_three_faults_of_any_kind_ends_well_too(releases: str) -> None:
    _check(3, releases=releases)
