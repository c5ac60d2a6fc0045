"""What a recipe needs on its nodes before it can be deployed: a look at recipe, gang and states."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra.api import Host, State

from pyinfra_vllm import catalog
from pyinfra_vllm.changes import States
from pyinfra_vllm.cluster import MAIN, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.questions import Question, query_of
from pyinfra_vllm.recipe import Recipe


@dataclass(frozen=True)
class Prerequisites:
    """The recipe, the gang that is to serve it, and the states of its nodes by name."""

    recipe: Recipe
    gang: Gang
    states: States


_LOCK = RLock()
_KNOWN: WeakKeyDictionary[State, dict[tuple[str, str], Prerequisites]] = WeakKeyDictionary()


def look(state: State, host: Host, recipe: object) -> Prerequisites:
    """For the gang of ``host``, once for all its nodes. Refusal says what is wrong."""
    with _LOCK:
        known = _KNOWN.setdefault(host.state, {})
        key = (repr(recipe), str(host.data.get("vllm_gang", MAIN)))
        try:
            if key not in known:
                known[key] = _look(state, recipe, key[1])
        except UserError as error:
            raise Refusal(str(error)) from None
        return known[key]


def _look(state: State, recipe: object, gang_name: str) -> Prerequisites:
    if recipe is None:
        raise UserError("which recipe? say it: --data recipe=NAME")
    data = {host.name: host.data.dict() for host in state.inventory}
    size = sum(1 for values in data.values() if values.get("vllm_gang", MAIN) == gang_name)
    found = catalog.find(recipe, size).recipe
    gang = gang_of(data, found.required_nodes, gang_name)
    question = Question(gang.name, found, None, gang.addresses)
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    states = survey.gang_states(state, hosts, lambda at: query_of(question, gang.node(at.name)))
    return Prerequisites(found, gang, states)
