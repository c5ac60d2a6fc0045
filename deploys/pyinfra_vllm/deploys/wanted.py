"""From inventory and recipe to the release that a gang is to serve, once a run."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra.api import Host, State
from pyinfra.api.exceptions import PyinfraError

from pyinfra_vllm import catalog, image, preflight
from pyinfra_vllm.changes import States, restart_reasons
from pyinfra_vllm.cluster import MAIN, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.image import Build
from pyinfra_vllm.questions import Question, query_of
from pyinfra_vllm.release import Content, Release, release_of


@dataclass(frozen=True)
class Wanted:
    """``token`` is a random name for what one run offers between nodes."""

    release: Release
    build: Build | None
    token: str


_LOCK = RLock()
_WANTED: WeakKeyDictionary[State, dict[tuple[str, str], Wanted]] = WeakKeyDictionary()


def wanted_release(state: State, host: Host, recipe: object) -> Wanted:
    """The release for the gang of ``host``, computed once for all its nodes.

    Raises PyinfraError with the whole message for whatever stops the deploy.
    """
    with _LOCK:
        known = _WANTED.setdefault(state, {})
        key = (repr(recipe), str(host.data.get("vllm_gang", MAIN)))
        try:
            if key not in known:
                _refuse_disorder()
                known[key] = _compute(state, recipe, key[1])
        except UserError as error:
            raise PyinfraError(str(error)) from None
        return known[key]


def _refuse_disorder() -> None:
    for option in ("--serial", "--no-wait"):
        if option in sys.argv:
            raise UserError(f"{option} breaks the order between the nodes of a gang; leave it out")


def _compute(state: State, recipe: object, gang_name: str) -> Wanted:
    if recipe is None:
        raise UserError("which recipe? say it: --data recipe=NAME, or serve(recipe=…)")
    hosts = list(state.inventory)
    data = {host.name: host.data.dict() for host in hosts}
    size = sum(1 for values in data.values() if values.get("vllm_gang", MAIN) == gang_name)
    found = catalog.find(recipe, size)
    gang = gang_of(data, found.recipe.required_nodes, gang_name)
    _refuse_lost_nodes(state, gang)
    build = _build_of(found)
    question = Question(gang.name, found.recipe, build.digest if build else None)
    states = _survey(state, gang, question)
    _refuse(preflight.problems(found.recipe, gang, build, states))
    revisions = preflight.revisions_of(found.recipe, gang, states)
    content = Content(found.name, found.recipe, gang, question.build, revisions)
    release = release_of(content)
    _refuse_partial_switch(state, release, states)
    return Wanted(release, build, secrets.token_hex(16))


def _build_of(found: catalog.Found) -> Build | None:
    recipe = found.recipe
    if recipe.docker_image_dir is None:
        return None
    return image.build_of(recipe.docker_image_dir, recipe.build_profile, recipe.docker_image)


def _survey(state: State, gang: Gang, question: Question) -> States:
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    return survey.gang_states(state, hosts, lambda host: query_of(question, gang.node(host.name)))


def _refuse(problems: list[str]) -> None:
    if problems:
        raise UserError("\n".join(["nothing was changed:", *problems]))


def _refuse_lost_nodes(state: State, gang: Gang) -> None:
    members = {node.name for node in gang.nodes}
    lost = sorted(members & {host.name for host in state.failed_hosts})
    _refuse([f"{name}: can't be reached (see above), and the gang needs it" for name in lost])


def _refuse_partial_switch(state: State, release: Release, states: States) -> None:
    active = {host.name for host in state.active_hosts}
    left_out = [node.name for node in release.content.gang.nodes if node.name not in active]
    if left_out and restart_reasons(release, states):
        names = ", ".join(left_out)
        _refuse([f"the gang must be started anew, and {names} is left out; run without --limit"])
