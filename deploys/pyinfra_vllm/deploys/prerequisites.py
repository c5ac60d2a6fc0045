"""What a recipe needs on its nodes before it can be deployed: a look at recipe, gang and states."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra.api import Host, State

from pyinfra_vllm import catalog
from pyinfra_vllm.changes import States
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.inventory import gang_of, members
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.gangs import Members
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
        key = (repr(recipe), gang_of(host))
        try:
            if key not in known:
                known[key] = _look(state, members(host), recipe, key[1])
        except UserError as error:
            raise Refusal(str(error)) from None
        return known[key]


def _look(state: State, inventory: Members, recipe: object, name: str) -> Prerequisites:
    wanted = recipe or inventory.recipe(name)
    if wanted is None:
        raise UserError(f"which recipe for gang {name}? say it: --data recipe=NAME")
    found = catalog.find(wanted, len(inventory.of(name))).recipe
    gang = inventory.gang(name, found.required_nodes)
    question = Question(gang.name, found, None, gang.addresses)
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    states = survey.gang_states(state, hosts, lambda at: query_of(question, gang.node(at.name)))
    return Prerequisites(found, gang, states)
