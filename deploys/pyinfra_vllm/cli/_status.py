"""How the gangs of an inventory are: one look at every node, and the plan for drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyinfra_vllm import catalog
from pyinfra_vllm.cli import _nodes, _plan
from pyinfra_vllm.cli._session import session, unheard
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.gang_status import GangStatus, Status, recipe_of, status_of
from pyinfra_vllm.recipe import ReferencePoint

if TYPE_CHECKING:
    from pyinfra.api import State

    from pyinfra_vllm.facts.told import Told

_DEADLINE = 5.0
"""Seconds that a hung docker or file server may cost."""
_BETWEEN = 1.0
"""Seconds over which tokens are counted."""


def status(inventory: str, password: str | None = None) -> Status:
    """Of every gang, whatever is dead in it. UserError for an inventory that can't be read."""
    found, queries = _nodes.asked(inventory)
    queries = {
        name: query.model_copy(update={"deadline": _DEADLINE, "metrics": _BETWEEN})
        for name, query in queries.items()
    }
    with session(inventory, list(queries), sudo=password) as (state, notes):
        from pyinfra_vllm.facts import told

        listener = told.listen(state)
        _nodes.ask(state, notes, queries, found)
        with unheard():
            gangs = tuple(_gang(state, listener, gang, found) for gang in found.gangs)
    return Status(schema=1, gangs=gangs)


def _gang(state: State, listener: Told, gang: Gang, found: _nodes.Read) -> GangStatus:
    """With drift, as far as the recipe that is deployed is known here."""
    head = found.states.get(gang.head.name)
    name = recipe_of(gang.name, head) if head else ""
    references: tuple[ReferencePoint, ...] = ()
    why = "the head doesn't answer" if head is None else "nothing is deployed"
    drifted: set[str] | None = None
    if name:
        try:
            references = catalog.find(name, gang.size).recipe.reference_points
            drifted, why = _drift(state, listener, gang, name)
        except UserError as error:
            why = str(error)
    known = status_of(gang, found.states, found.silent, references)
    if drifted is None:
        return known.model_copy(update={"drift_unknown": why})
    ranks = [
        rank.model_copy(update={"drift": rank.node in drifted}) if rank.reached else rank
        for rank in known.ranks
    ]
    return known.model_copy(update={"ranks": tuple(ranks)})


def _drift(state: State, listener: Told, gang: Gang, recipe: str) -> tuple[set[str] | None, str]:
    """The nodes that a deploy of the recipe would change; else why that isn't known."""
    hosts = _plan.by_gang(state).get(gang.name, [])
    found = _plan.of_gang(state, listener, gang.name, hosts, recipe)
    if found is None or found.error:
        return None, found.error if found else "the recipe needs other nodes"
    return {node for change in found.real_changes for node in change.nodes}, ""
