"""From inventory and recipe to the release that a gang is to serve, once a run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host, State

from pyinfra_vllm import (
    build_window,
    catalog,
    fabric,
    fabric_proof,
    image,
    preflight,
    secret_values,
)
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States, images_differ
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.deploys.refusals import (
    refuse,
    refuse_arguments,
    refuse_disorder,
    refuse_findings,
    refuse_move,
    refuse_partial_switch,
    say_lost_nodes,
)
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey, told
from pyinfra_vllm.facts.inventory import gang_of, members
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.gangs import Members
from pyinfra_vllm.image import Build
from pyinfra_vllm.questions import Question, query_of
from pyinfra_vllm.recipe import Recipe
from pyinfra_vllm.release import Content, Release, release_of
from pyinfra_vllm.secret_values import Secrets
from pyinfra_vllm.starts import is_lent, last_failures, restart_reasons


@dataclass(frozen=True)
class Wanted:
    """What one run is to bring about.

    ``token`` is a random name for what it offers between nodes. ``failures``: node -> when
    its engine of this release had died before (Unix seconds). ``before``: its RDMA ports
    before the start; empty when nothing is started.
    """

    release: Release
    build: Build | None
    token: str
    failures: Mapping[str, float]
    before: Mapping[str, fabric_proof.Before]
    moves: tuple[str, ...] = ()
    """What becomes of nodes whose rank changes; empty when none does."""
    stops: tuple[str, ...] = ()
    """Containers and units of others that make room."""
    images: bool = True
    """Whether an image is to be made or sent; where it isn't, no operation looks for one."""
    window: bool = False
    """Whether an earlier run has left a build window open."""
    lent: bool = False
    """Whether the head wants this very release, but for a trial only."""


_LOCK = RLock()
_WANTED: WeakKeyDictionary[State, dict[tuple[str, str], Wanted | Refusal | None]] = (
    WeakKeyDictionary()
)


def wanted_release(state: State, host: Host, recipe: object) -> Wanted | None:
    """The release for the gang of ``host``, computed once for all its nodes.

    ``recipe`` None: the data of the gang's hosts says which. None when recipes were said for
    other gangs only. Raises Refusal with the whole message for whatever stops the deploy.
    """
    with _LOCK:
        known = _WANTED.setdefault(host.state, {})
        key = (repr(recipe), gang_of(host))
        if key not in known:
            try:
                refuse_disorder()
                known[key] = _of_gang(state, members(host), recipe, key[1])
            except UserError as error:
                known[key] = Refusal(str(error))
        found = known[key]
        if isinstance(found, Refusal):
            raise found
        return found


def _of_gang(state: State, inventory: Members, recipe: object, gang: str) -> Wanted | None:
    wanted = recipe or inventory.recipe(gang)
    if wanted is not None:
        return _compute(state, inventory, wanted, gang)
    if any(inventory.recipe(name) for name in inventory.names):
        return None
    raise UserError("which recipe? say it: --data recipe=NAME, or serve(recipe=…)")


def computed(state: State, gang: str) -> Wanted | None:
    """What a run is to bring about for a gang, where that has been computed and not refused."""
    for (_, name), found in _WANTED.get(state, {}).items():
        if name == gang and isinstance(found, Wanted):
            return found
    return None


def states_of(state: State, wanted: Wanted) -> States:
    """States of the gang's nodes in the phase that is running, as far as they can be read."""
    content = wanted.release.content
    return _survey(state, content.gang, content.question)


def _compute(state: State, inventory: Members, recipe: object, gang_name: str) -> Wanted:
    found = catalog.find(recipe, len(inventory.of(gang_name)))
    gang = inventory.gang(gang_name, found.recipe.required_nodes)
    build = _build_of(found)
    gang, states = _look_at(state, gang, found.recipe, build)
    stops = _stops(inventory.nodes[gang.head.name].get("stop_foreign"))
    alone = len(inventory.names) == 1
    findings = preflight.findings(found.recipe, gang, build, states, stops, alone)
    told.found(state.inventory.state, gang.name, findings)
    refuse_findings(findings)
    refuse_arguments(found, build)
    revisions = preflight.revisions_of(found.recipe, gang, states)
    known = _secrets(found.recipe, gang, inventory.nodes, states)
    digest = build.digest if build else None
    content = Content(found.name, found.recipe, gang, digest, revisions, known)
    release = release_of(content)
    moves = refuse_move(inventory, state, gang, states)
    say_lost_nodes(release, states)
    refuse_partial_switch(state, release, states)
    failures = last_failures(release, states)
    before = fabric_proof.before(states) if restart_reasons(release, states) else {}
    head = states.get(gang.head.name)
    paused = head.file(paths.paused(gang_name)) if head else None
    return Wanted(
        release=release,
        build=build,
        token=secrets.token_hex(16),
        failures=failures,
        before=before,
        moves=moves,
        stops=stops,
        images=images_differ(release, states),
        window=build_window.has_lease(paused),
        lent=head is not None and is_lent(release, head),
    )


def _stops(value: object) -> tuple[str, ...]:
    """Names in ``--data stop_foreign=NAME,NAME``."""
    return tuple(str(value).split(",")) if value is not None else ()


def _secrets(recipe: Recipe, gang: Gang, data: Mapping[str, Any], states: States) -> Secrets:
    """UserError when a value is known neither here nor on the nodes."""
    files = {data[node.name].get("vllm_secrets") for node in gang.nodes}
    if len(files) > 1:
        raise UserError(f"gang {gang.name}: vllm_secrets differs between its nodes")
    found = secret_values.read(recipe.secrets, files.pop(), os.environ)
    files_there = {node: state.secrets.required for node, state in states.items()}
    refuse(secret_values.lacking_lines(found, files_there))
    return found


def _build_of(found: catalog.Found) -> Build | None:
    recipe = found.recipe
    if recipe.docker_image_dir is None:
        return None
    return image.build_of(recipe.docker_image_dir, recipe.build_profile, recipe.docker_image)


def _look_at(state: State, gang: Gang, recipe: Recipe, build: Build | None) -> tuple[Gang, States]:
    """The gang with its fabric, and the states of the nodes that can be reached."""
    digest = build.digest if build else None
    states = _survey(state, gang, Question(gang.name, recipe, digest, gang.addresses))
    if not states:
        raise UserError("none of the gang's nodes can be reached (see above)")
    whole = fabric.derived(gang, states)
    if whole == gang:
        return gang, states
    for line in fabric.notes(whole):
        logger.info(line)
    # Only now can the nodes be asked whether they reach each other.
    for node in whole.nodes:
        survey.forget(state, state.inventory.get_host(node.name))
    return whole, _survey(state, whole, Question(whole.name, recipe, digest, whole.addresses))


def _survey(state: State, gang: Gang, question: Question) -> States:
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    return survey.gang_states(state, hosts, lambda host: query_of(question, gang.node(host.name)))
