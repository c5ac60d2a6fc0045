"""Deploy: go back to a release that is on the nodes already."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra import host, logger, state
from pyinfra.api import Host, State, deploy

from pyinfra_vllm import controller, going_back
from pyinfra_vllm.changes import States
from pyinfra_vllm.cluster import MAIN, Gang
from pyinfra_vllm.deploys import data
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.inventory import members as members_of
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.going_back import Choice
from pyinfra_vllm.operations import going_back as operations
from pyinfra_vllm.operations import lock

_LOCK = RLock()
_KNOWN: WeakKeyDictionary[State, dict[str, Choice | Refusal]] = WeakKeyDictionary()


@deploy("Roll back", data_defaults={"vllm_gang": MAIN, "gang": None})
def rollback(release: str | None = None) -> None:
    """The gang of this host serves again what it served before, or ``release``.

    ``release`` (else ``--data release=…``): the beginning of a digest. ``--data
    trial_seconds=…`` is allowed until the first completion; then the head returns to what
    it served when this began. Raises Refusal, before anything is changed, when the release
    or its image isn't on all its nodes.
    """
    if not data.concerns(host):
        return
    choice = _choice(state, host, release or data.text(host, "release"))
    goal = choice.goal
    if host.name not in goal.nodes:
        logger.info(f"{host.print_prefix}left alone: the release needs {len(goal.nodes)} nodes")
        return
    lock.guard(state, host, goal.gang, goal.nodes[0], f"rollback to {goal.release[:12]}")
    order = goal.order("rollback", controller.about())
    operations.asked(name="Gang: asked for the release", goal=goal, order=order)
    operations.ready(name="Gang: ready", goal=goal)
    lock.released(name="Gang: lock given back")


def _choice(state: State, host: Host, named: str | None) -> Choice:
    gang_name = str(host.data.get("vllm_gang", MAIN))
    with _LOCK:
        known = _KNOWN.setdefault(host.state, {})
        if gang_name not in known:
            try:
                gang, states = gang_here(state, gang_name)
                seconds = data.seconds(host, "trial_seconds")
                known[gang_name] = going_back.choose(gang, states, named, seconds)
            except UserError as error:
                known[gang_name] = Refusal(str(error))
        found = known[gang_name]
    if isinstance(found, Refusal):
        raise found
    return found


def gang_here(state: State, gang_name: str, with_images: bool = True) -> tuple[Gang, States]:
    """All nodes of the gang in the inventory, and the states of those that can be reached.

    ``with_images``: also of images that others made, which takes another look.
    """
    members = members_of(next(iter(state.inventory)))
    gang = members.gang(gang_name, len(members.of(gang_name)))
    states = _survey(state, gang, ())
    tags = going_back.tags(states) if with_images else ()
    if tags:
        for node in gang.nodes:
            survey.forget(state, state.inventory.get_host(node.name))
        states = _survey(state, gang, tags)
    return gang, states


def _survey(state: State, gang: Gang, tags: tuple[str, ...]) -> States:
    members = [state.inventory.get_host(node.name) for node in gang.nodes]
    return survey.gang_states(state, members, lambda _: going_back.query(gang.name, tags))
