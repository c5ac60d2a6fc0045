"""The states of an inventory's nodes, read through pyinfra; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyinfra_vllm import catalog, image
from pyinfra_vllm.cli._session import Notes, session
from pyinfra_vllm.cluster import MAIN, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState, Query
from pyinfra_vllm.questions import Question, merged, query_of

if TYPE_CHECKING:
    from pyinfra.api import State


@dataclass
class Read:
    """``states`` of the nodes that answered; ``silent``: node -> why another one didn't."""

    gangs: list[Gang]
    recipes: list[catalog.Found]
    states: dict[str, NodeState] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)


def read(inventory: str, recipe: str | None = None, password: str | None = None) -> Read:
    """Ask all nodes of all gangs, for one recipe or for every one that fits the gang.

    ``password``: of sudo. UserError for a wrong inventory or recipe.
    """
    found, queries = asked(inventory, recipe)
    with session(inventory, list(queries), sudo=password) as (state, notes):
        ask(state, notes, queries, found)
    return found


def heads(inventory: str, password: str | None = None) -> Read:
    """Ask the heads of all gangs for their history alone."""
    from pyinfra_vllm.agent import switches
    from pyinfra_vllm.cli import _inventory

    data = _inventory.hosts(inventory)
    found = Read([_whole_gang(data, name) for name in _gang_names(data)], [])
    queries = {
        gang.head.name: Query(gang=gang.name, files=switches.files(gang.name))
        for gang in found.gangs
    }
    with session(inventory, list(queries), sudo=password) as (state, notes):
        ask(state, notes, queries, found)
    return found


def asked(inventory: str, recipe: str | None = None) -> tuple[Read, dict[str, Query]]:
    """What is to be asked of each node, before any is reached. UserError as for :func:`read`."""
    from pyinfra_vllm.cli import _inventory

    data = _inventory.hosts(inventory)
    gangs = [_whole_gang(data, name) for name in _gang_names(data)]
    found = Read(gangs, _recipes(recipe, max((gang.size for gang in gangs), default=0)))
    queries = {
        node.name: _query(gang, found.recipes, node.name) for gang in gangs for node in gang.nodes
    }
    if not queries:
        raise UserError(f"inventory {inventory}: no host has a vllm_rank")
    return found, queries


def ask(state: State, notes: Notes, queries: Mapping[str, Query], found: Read) -> None:
    """Ask the hosts that are connected; ``found`` is told what they say.

    ``notes``: have what was said of the others.
    """
    from pyinfra_vllm.facts import survey

    reached = [host for host in state.inventory if host.connected]
    results = survey.each_state(state, reached, lambda host: queries[host.name])
    for name in queries:
        value = results.get(name) or notes.about(name) or "can't be reached"
        if isinstance(value, NodeState):
            found.states[name] = value
        else:
            found.silent[name] = str(value)


def _gang_names(data: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return sorted({str(values.get("vllm_gang", MAIN)) for values in data.values()})


def _whole_gang(data: Mapping[str, Mapping[str, Any]], name: str) -> Gang:
    size = sum(1 for values in data.values() if values.get("vllm_gang", MAIN) == name)
    return gang_of(data, size, name)


def _recipes(wanted: str | None, size: int) -> list[catalog.Found]:
    if wanted is not None:
        return [catalog.find(wanted, size)]
    every = [catalog.find(str(path)) for path in catalog.names().values()]
    return [found for found in every if found.recipe.required_nodes <= size]


def _query(gang: Gang, recipes: list[catalog.Found], name: str) -> Query:
    node = gang.node(name)
    if not recipes:
        return Query(gang=gang.name, peers=tuple(a for a in gang.addresses if a))
    return merged([query_of(_question(gang, found), node) for found in recipes])


def _question(gang: Gang, found: catalog.Found) -> Question:
    build = build_of(found)
    return Question(gang.name, found.recipe, build.digest if build else None, gang.addresses)


def build_of(found: catalog.Found) -> image.Build | None:
    """The build of the recipe's image; None for an image that others make."""
    recipe = found.recipe
    if recipe.docker_image_dir is None:
        return None
    return image.build_of(recipe.docker_image_dir, recipe.build_profile, recipe.docker_image)
