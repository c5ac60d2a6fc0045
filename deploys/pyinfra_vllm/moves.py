"""Ranks that move from node to node, the head's above all. Pure.

What a node was is in its ``gang.json``, which names the fabric addresses of all ranks. An agent
reads it at its start: one that runs goes on as what it was. So a move is no switch. The old head
stops first, or is known to be dead; then everybody learns who they are; then the new head starts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.node.state import NodeState


@dataclass(frozen=True)
class Move:
    """``ranks``: node -> its rank before and after, where they differ. ``stale``: nodes that know
    another order than the one to be. ``old_heads``: nodes that were the head and are it no more.
    ``gone``: fabric address of a head that is none of the nodes that are known.
    """

    ranks: Mapping[str, tuple[int, int]]
    stale: tuple[str, ...]
    old_heads: tuple[str, ...]
    gone: str

    @property
    def lines(self) -> list[str]:
        """For people: what becomes of each node."""
        found = [f"rank of {name} changes from {a} to {b}" for name, (a, b) in self.ranks.items()]
        if self.gone:
            found.append(f"the head was at {self.gone}, which is no node of the gang any more")
        return found


@dataclass(frozen=True)
class _Was:
    rank: int
    addresses: tuple[str, ...]

    def differs(self, rank: int, addresses: tuple[str, ...]) -> bool:
        # A recipe for fewer or more nodes moves nobody.
        both = min(len(self.addresses), len(addresses))
        return self.rank != rank or self.addresses[:both] != addresses[:both]


def move(gang: Gang, states: Mapping[str, NodeState]) -> Move | None:
    """What moves; None when everybody stays who they are, or is new."""
    was = {node.name: _was(gang.name, states.get(node.name)) for node in gang.nodes}
    known = {node: found for node in gang.nodes if (found := was[node.name])}
    stale = tuple(
        node.name for node, found in known.items() if found.differs(node.rank, gang.addresses)
    )
    if not stale:
        return None
    before = {found.addresses[0] for node, found in known.items() if node.name in stale}
    # Who answers is a head only by its own word: a move that was cut leaves some who know.
    there = {node.fabric_address for node in gang.nodes if node.name in states}
    return Move(
        ranks={
            node.name: (found.rank, node.rank)
            for node, found in known.items()
            if found.rank != node.rank
        },
        stale=stale,
        old_heads=tuple(
            node.name for node, found in known.items() if found.rank == 0 and node.rank != 0
        ),
        gone=next(iter(sorted(before - there)), ""),
    )


def refusal(
    found: Move, gang: Gang, dead: Collection[str], names: Mapping[str, str], alive: Collection[str]
) -> str | None:
    """Why the head can't move now; None: it can.

    ``dead``: hosts, by name or address, that the operator says are dead. ``names``: inventory
    name by fabric address; ``alive``: names of the hosts that answer.
    """
    wrong = sorted(name for name in dead if name in alive or names.get(name) in alive)
    if wrong:
        return f"dead={','.join(wrong)}: it answers, and is no dead node; leave that out"
    name = names.get(found.gone, "")
    if not found.gone or name in alive or {found.gone, name} & set(dead):
        return None
    unit = paths.unit(gang.name)
    what = (
        f"{name} ({found.gone}), which can't be reached"
        if name
        else f"{found.gone}, which is no host of this inventory"
    )
    return (
        f"the head of gang {gang.name} moves to {gang.head.name}, and it was {what}; if it still "
        f"runs there would be two heads. Stop it there (systemctl disable --now {unit}) or switch "
        f"it off; then say so: --data dead={name or found.gone}"
    )


def _was(gang: str, state: NodeState | None) -> _Was | None:
    """What a node's ``gang.json`` says; None where there is none that can be read."""
    try:
        found = state.file(paths.members(gang)) if state else None
        known = json.loads(found.text or "") if found else {}
        return _Was(int(known["rank"]), tuple(map(str, known["addresses"])))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
