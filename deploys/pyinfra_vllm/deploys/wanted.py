"""From inventory and recipe to the release that a gang is to serve, once a run."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host, State

from pyinfra_vllm import (
    catalog,
    check,
    fabric,
    fabric_proof,
    flag_cache,
    flag_list,
    image,
    preflight,
    secret_values,
)
from pyinfra_vllm.changes import States, image_lacking, image_source
from pyinfra_vllm.cluster import MAIN, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey, told
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.image import Build
from pyinfra_vllm.image_origin import builders
from pyinfra_vllm.questions import Question, query_of
from pyinfra_vllm.recipe import Recipe
from pyinfra_vllm.release import Content, Release, release_of
from pyinfra_vllm.secret_values import Secrets
from pyinfra_vllm.starts import last_failures, restart_reasons
from pyinfra_vllm.validation import shown


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


_LOCK = RLock()
_WANTED: WeakKeyDictionary[State, dict[tuple[str, str], Wanted | Refusal]] = WeakKeyDictionary()


def wanted_release(state: State, host: Host, recipe: object) -> Wanted:
    """The release for the gang of ``host``, computed once for all its nodes.

    Raises Refusal with the whole message for whatever stops the deploy.
    """
    with _LOCK:
        known = _WANTED.setdefault(host.state, {})
        key = (repr(recipe), str(host.data.get("vllm_gang", MAIN)))
        if key not in known:
            try:
                _refuse_disorder()
                known[key] = _compute(state, recipe, key[1])
            except UserError as error:
                known[key] = Refusal(str(error))
        found = known[key]
        if isinstance(found, Refusal):
            raise found
        return found


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


def _refuse_disorder() -> None:
    for option in ("--serial", "--no-wait"):
        if option in sys.argv:
            raise UserError(f"{option} breaks the order between the nodes of a gang; leave it out")


def _compute(state: State, recipe: object, gang_name: str) -> Wanted:
    if recipe is None:
        raise UserError("which recipe? say it: --data recipe=NAME, or serve(recipe=…)")
    hosts = list(state.inventory)
    data = _nodes_of({host.name: host.data.dict() for host in hosts})
    outside = builders(data)
    data = {name: values for name, values in data.items() if name not in outside}
    size = sum(1 for values in data.values() if values.get("vllm_gang", MAIN) == gang_name)
    found = catalog.find(recipe, size)
    gang = gang_of(data, found.recipe.required_nodes, gang_name)
    build = _build_of(found)
    gang, states = _look_at(state, gang, found.recipe, build)
    findings = preflight.findings(found.recipe, gang, build, states)
    told.found(state.inventory.state, gang.name, findings)
    _check(findings)
    _refuse_arguments(found, build)
    revisions = preflight.revisions_of(found.recipe, gang, states)
    known = _secrets(found.recipe, gang, data, states)
    digest = build.digest if build else None
    content = Content(found.name, found.recipe, gang, digest, revisions, known)
    release = release_of(content)
    _say_lost_nodes(state, release, states)
    _refuse_partial_switch(state, release, states)
    failures = last_failures(release, states)
    before = fabric_proof.before(states) if restart_reasons(release, states) else {}
    return Wanted(release, build, secrets.token_hex(16), failures, before)


def _nodes_of(hosts: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Hosts of which the inventory says something of ours; the others are none of our business.

    The gang alone says nothing: every host that a deploy runs on has its default.
    """
    said = {
        name: data
        for name, data in hosts.items()
        if any(key.startswith("vllm_") and key != "vllm_gang" for key in data)
    }
    return said or dict(hosts)


def _refuse_arguments(found: catalog.Found, build: Build | None) -> None:
    """UserError for flags that the image doesn't have, where it was asked before."""
    known = flag_cache.known(build.digest) if build else None
    if known and found.recipe.entrypoint == flag_list.ENTRYPOINT:
        where = shown(found.path)
        _refuse([f"{where}: {line}" for line in check.flag_findings(found.recipe, known)])


def _secrets(recipe: Recipe, gang: Gang, data: Mapping[str, Any], states: States) -> Secrets:
    """UserError when a value is known neither here nor on the nodes."""
    files = {data[node.name].get("vllm_secrets") for node in gang.nodes}
    if len(files) > 1:
        raise UserError(f"gang {gang.name}: vllm_secrets differs between its nodes")
    found = secret_values.read(recipe.secrets, files.pop(), os.environ)
    lacking = {
        name: node
        for node, state in states.items()
        for name in secret_values.lacking(found, state.secrets.required)
    }
    _refuse(
        [
            f"secret {name}: {node} has no value, and neither has this machine: set it in the "
            "environment, or in a file that vllm_secrets in the inventory names"
            for name, node in lacking.items()
        ]
    )
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


def _check(findings: list[preflight.Finding]) -> None:
    """Show what was found; UserError when something stops the deploy."""
    logger.info(preflight.summary(findings))
    for line in preflight.lines(findings, "warn", "waived", "unknown"):
        logger.info(f"  {line}")
    _refuse([finding.sentence for finding in findings if finding.status == "fail"])


def _refuse(problems: list[str]) -> None:
    if problems:
        raise UserError("\n".join(["nothing was changed:", *problems]))


def _say_lost_nodes(state: State, release: Release, states: States) -> None:
    """A node that can't be reached is left out of everything but a switch, which needs it."""
    gang = release.content.gang
    lost = [node.name for node in gang.nodes if node.name not in states]
    if not lost:
        return
    names = ", ".join(lost)
    logger.warning(f"{names}: can't be reached (see above), and left out; a switch needs all nodes")
    if gang.head.name in lost and image_source(release, states) is None:
        _refuse([f"the image is built on {gang.head.name}, and that can't be reached"])


def _refuse_partial_switch(state: State, release: Release, states: States) -> None:
    active = {host.name for host in state.active_hosts}
    # Nodes that can't be reached stop a switch at the gate, when the others are staged.
    left_out = [
        node
        for node in release.content.gang.nodes
        if node.name not in active and node.name in states
    ]
    if not left_out:
        return
    names = ", ".join(node.name for node in left_out)
    remedy = f"and {names} is left out; run without --limit"
    if restart_reasons(release, states):
        _refuse([f"the gang must be started anew, {remedy}"])
    lacking = image_lacking(release, states)
    if lacking and {image_source(release, states), *lacking} & set(left_out):
        _refuse([f"the image must go from node to node, {remedy}"])
