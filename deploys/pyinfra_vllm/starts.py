"""Whether a gang serves a release, and what only a deploy can change about it. Pure.

The gang heals itself: a rank that waits, prepares or starts needs nobody. What it can't
know by itself is another release, a unit that somebody has stopped, and whether it is
worth going on after it gave up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyinfra_vllm import running, secret_values
from pyinfra_vllm.agent import paths
from pyinfra_vllm.build_window import has_lease
from pyinfra_vllm.changes import States, image_layers, nodes_of
from pyinfra_vllm.moves import move
from pyinfra_vllm.node.models import AgentStatus
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import Release

EARLIER = 3
"""So many releases that served before the previous one are remembered."""


@dataclass(frozen=True)
class Wish:
    """``wanted.json`` of the head, as :mod:`.agent.wish` describes it."""

    release: str | None
    previous: str | None
    switch: int
    earlier: tuple[str, ...] = ()
    on_trial: bool = False
    """Whether it was asked for with a time limit; not whether that is over."""
    lent: bool = False
    """Whether the head goes back from it when nobody is heard of any more."""


@dataclass(frozen=True)
class Order:
    """How a release is asked for. ``seconds``: allowed until the first completion.

    ``about``: ``kind``, ``by``, ``recipe`` and ``image`` for the history. ``lease``: seconds
    for which it is only lent, None to keep it.
    """

    seconds: int
    about: Mapping[str, Any] = field(default_factory=dict)
    lease: int | None = None


def wish(gang: str, head: NodeState) -> Wish:
    """What the head is to serve now; nothing where the file is missing or broken."""
    found = head.file(paths.wanted(gang))
    try:
        known: dict[str, Any] = json.loads(found.text or "") if found else {}
        names = [known.get("release"), known.get("previous"), *(known.get("earlier") or ())]
        if known.get("schema", 1) != 1 or any(not isinstance(name, str | None) for name in names):
            return Wish(None, None, 0)
        return Wish(
            known.get("release"),
            known.get("previous"),
            int(known.get("switch", 0)),
            tuple(known.get("earlier") or ()),
            bool(known.get("trial")),
            bool(known.get("lease")),
        )
    except (ValueError, AttributeError, TypeError, ArithmeticError, RecursionError):
        return Wish(None, None, 0)


def is_lent(release: Release, head: NodeState) -> bool:
    """Whether the head wants this release for a trial only."""
    now = wish(release.content.gang.name, head)
    return now.release == release.digest and now.lent


def next_wish(gang: str, digest: str, head: NodeState, order: Order) -> str:
    """Text of ``wanted.json`` that asks for this release, once more if it is asked for already."""
    now = wish(gang, head)
    previous, earlier = _behind(now, digest, head)
    document = {
        "schema": 1,
        "release": digest,
        "previous": previous,
        "earlier": earlier,
        "deadline": None,
        "switch": now.switch + 1,
        "trial": {"seconds": order.seconds},
        "lease": order.lease,
        **order.about,
    }
    return json.dumps(document, indent=2) + "\n"


def _behind(now: Wish, digest: str, head: NodeState) -> tuple[str | None, list[str]]:
    """The release to go back to, and those that served before it."""
    stack = [now.previous, *now.earlier]
    if now.release != digest and not _is_unproven(now, head):
        stack = [now.release, *stack]
    known = [one for one in dict.fromkeys(stack) if one and one != digest]
    return (known[0] if known else None), known[1 : 1 + EARLIER]


def _is_unproven(now: Wish, head: NodeState) -> bool:
    """Whether what is wanted now has not answered a completion yet."""
    status = head.agent.required.status
    return now.on_trial and status is not None and status.passed != now.release


def is_paused(release: Release, states: States) -> bool:
    """Whether an operator has paused the gang until a resume; a build window ends by itself."""
    head = states.get(release.content.gang.head.name)
    marker = head.file(paths.paused(release.content.gang.name)) if head else None
    return marker is not None and not has_lease(marker)


def restart_reasons(release: Release, states: States) -> dict[str, str]:
    """Node -> why this release must be asked for, or a unit started; empty: nobody need act.

    Of nodes that aren't in ``states`` nothing is known, and they are no reason.
    """
    found = {
        node.name: _restart_reason(release, states[node.name], node.rank)
        for node in nodes_of(release, states)
    }
    head, renewal = release.content.gang.head.name, renewal_reason(release, states)
    if renewal and found.get(head, renewal) is None:
        found[head] = renewal
    moved = move(release.content.gang, states)
    if moved and head in states:
        found[head] = "; ".join(moved.lines) or "the addresses of the nodes change"
    return {name: reason for name, reason in found.items() if reason}


def serves(release: Release, states: States) -> bool:
    """Whether nothing is to be done and the head's agent has seen a completion."""
    return not restart_reasons(release, states) and _head_serves(release, states)


def last_failures(release: Release, states: States) -> dict[str, float]:
    """Node -> when its engine of this release has died (Unix seconds of the node), if it has."""
    found = {name: state.agent.required.status for name, state in states.items()}
    return {
        name: status.last_failure.at
        for name, status in found.items()
        if status and status.last_failure and status.last_failure.release == release.digest
    }


def _restart_reason(release: Release, state: NodeState, rank: int) -> str | None:
    unit = state.unit.required
    if rank == 0:
        now = wish(release.content.gang.name, state).release
        if now != release.digest:
            return f"{_short(now)} is wanted, {_short(release.digest)} is to be"
    if unit.active not in ("active", "activating", "reloading"):
        return f"the unit is {unit.active}"
    status = _status(release, state)
    if rank == 0 and status is not None and status.phase == "failed":
        return status.detail
    return None


def renewal_reason(release: Release, states: States) -> str | None:
    """Why engines that run must start anew though the release is what they were asked for."""
    return changed_secret(release, states) or _other_engine(release, states)


def _other_engine(release: Release, states: States) -> str | None:
    """An engine that isn't that of the release: a rank can't be replaced alone."""
    told = {name: state for name, state in states.items() if state.images.ok}
    layers = image_layers(release, told)
    found = [
        f"{node.name}: {line}"
        for node in nodes_of(release, states)
        for line in running.differences(release, node, states[node.name], layers)
    ]
    return f"what runs is not the release: {'; '.join(found)}" if found else None


def changed_secret(release: Release, states: States) -> str | None:
    """An engine got its secrets when it started: for a changed one all start anew."""
    recipe, known = release.content.recipe, release.content.secrets
    for node in nodes_of(release, states) if recipe.secrets else ():
        state = states[node.name]
        container = state.container(paths.container(release.content.gang.name))
        if container is None or not container.running:
            continue
        found = state.secrets.required
        changed = secret_values.differing(known, found) or secret_values.not_in_use(
            recipe.secrets, found
        )
        if changed:
            return f"secret {changed[0]} has changed on {node.name}"
    return None


def _head_serves(release: Release, states: States) -> bool:
    head = states.get(release.content.gang.head.name)
    status = _status(release, head) if head else None
    return status is not None and status.phase == "serving"


def _status(release: Release, state: NodeState) -> AgentStatus | None:
    """What the agent that runs now says of this release; a file left by another run is nothing."""
    status = state.agent.required.status
    if status is None or status.release != release.digest:
        return None
    return status if status.pid == state.unit.required.main_pid else None


def predates(state: NodeState) -> bool:
    """Whether the agent that runs is of a time when deploys, not heads, said what to serve."""
    status = state.agent.required.status
    runs = state.unit.required.active == "active"
    return runs and status is not None and "start" not in status.model_fields_set


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "nothing"
