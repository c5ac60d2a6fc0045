"""Which release on the nodes a gang can go back to, from the states of its nodes. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyinfra_vllm import goal
from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.changes import States
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.node.query import Query
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.starts import wish


@dataclass(frozen=True)
class Choice:
    """What to go back to, and from what (None where nothing is wanted)."""

    goal: Goal
    instead_of: str | None


def query(gang: str, tags: tuple[str, ...] = ()) -> Query:
    """What must be known of every node. ``tags``: of images that carry no build digest."""
    files = (paths.wanted(gang), paths.paused(gang), paths.AGENT)
    return Query(gang=gang, files=files, image_tags=tags)


def tags(states: States) -> tuple[str, ...]:
    """Tags of images that releases on the nodes name without a build digest."""
    found: dict[str, None] = {}
    for state in states.values():
        for digest in state.gang.required.releases:
            known = _goal(digest, state, ())
            if known and not known.image["build"]:
                found[known.image["tag"]] = None
    return tuple(found)


def choose(gang: Gang, states: States, named: str | None, seconds: int | None = None) -> Choice:
    """``named``: the beginning of a digest; None: the release that served before.

    UserError when there is none, or when it isn't whole on all its nodes.
    """
    head = states.get(gang.head.name)
    if head is None:
        raise UserError(f"{gang.head.name}, the head of gang {gang.name}, can't be reached")
    now = wish(gang.name, head)
    digest = _named(gang, head, named) if named else now.previous
    if digest is None:
        raise UserError(
            f"gang {gang.name}: no release served before the present one; "
            f"{_known(gang, head)}; name one: --data release=DIGEST"
        )
    names = tuple(node.name for node in gang.nodes)
    found = _goal(digest, head, names, seconds)
    if found is None:
        raise UserError(f"{gang.head.name}: release {digest[:12]} is not whole there; deploy it")
    problems = list(_problems(found, states))
    if problems:
        raise UserError("\n".join(["nothing was changed:", *problems]))
    return Choice(found, now.release)


def _named(gang: Gang, head: NodeState, named: str) -> str:
    matching = [one for one in head.gang.required.releases if one.startswith(named.lower())]
    if len(matching) == 1:
        return matching[0]
    what = "several releases begin" if matching else "no release begins"
    raise UserError(f"gang {gang.name}: {what} with {named}; {_known(gang, head)}")


def _known(gang: Gang, head: NodeState) -> str:
    there = head.gang.required.releases
    if not there:
        return f"none is on {gang.head.name}"
    newest = sorted(there, key=lambda one: there[one].modified, reverse=True)
    lines = []
    for digest in newest:
        found = _goal(digest, head, ())
        lines.append(f"{digest[:12]} ({found.recipe if found else 'broken'})")
    return f"on {gang.head.name} are: " + ", ".join(lines)


def _problems(found: Goal, states: States) -> Iterator[str]:
    for rank, name in enumerate(found.nodes):
        state = states.get(name)
        if state is None:
            yield f"{name}: can't be reached, and going back needs all nodes"
            continue
        here = _goal(found.release, state, ())
        if here is None:
            yield f"{name}: release {found.release[:12]} is not there; deploy its recipe instead"
        elif (was := _rank(found.release, state)) != rank:
            yield (
                f"{name}: is rank {rank}, and was rank {was} in release {found.release[:12]}; "
                "there is no way back over a move; deploy its recipe instead"
            )
        elif not _has_image(here.image, state):
            yield (
                f"{name}: the image {here.image['tag']} of release {found.release[:12]} is gone; "
                "deploy its recipe instead"
            )


def _rank(digest: str, state: NodeState) -> int | None:
    """The rank that a node has in a release on it."""
    release = state.release(digest)
    launch = release.files.get(paths.LAUNCH) if release else None
    try:
        return int(json.loads((launch and launch.text) or "")["rank"])
    except (ValueError, LookupError, TypeError):
        return None


def _has_image(image: Any, state: NodeState) -> bool:
    found = state.image_of(image["build"]) if image["build"] else state.image_tagged(image["tag"])
    return found is not None


def _goal(
    digest: str, state: NodeState, names: tuple[str, ...], seconds: int | None = None
) -> Goal | None:
    release = state.release(digest)
    launch = release.files.get(paths.LAUNCH) if release else None
    if launch is None or launch.text is None:
        return None
    try:
        return goal.of_launch(launch.text, names, seconds)
    except (Unmet, ValueError):
        return None


def is_served(found: Goal, head: NodeState) -> bool:
    """Whether the head wants it, and has answered a completion with it."""
    status = head.agent.required.status
    return (
        wish(found.gang, head).release == found.release
        and status is not None
        and (status.phase, status.release) == ("serving", found.release)
        and status.pid == head.unit.required.main_pid
    )


def serving(gang: Gang, states: States) -> Goal:
    """What is wanted now, to go back to later. UserError when it isn't whole on its nodes."""
    head = states.get(gang.head.name)
    now = wish(gang.name, head).release if head else None
    found = _goal(now, head, tuple(node.name for node in gang.nodes)) if now and head else None
    if found is None:
        raise UserError(f"gang {gang.name} has served nothing yet; deploy first")
    lacking = [
        name
        for name in found.nodes
        if name not in states or _goal(found.release, states[name], ()) is None
    ]
    if lacking:
        raise UserError(f"{', '.join(lacking)}: release {found.release[:12]} is not there")
    return found
