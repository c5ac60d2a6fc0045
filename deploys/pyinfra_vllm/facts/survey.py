"""What is, for whole gangs: the node state of each host, read once while nothing changes.

pyinfra keeps no facts: without this memo every operation would cost a remote
command at prepare and another one at execute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import gevent
from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host, State
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.api.facts import get_fact
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_host

from pyinfra_vllm.facts import sudo
from pyinfra_vllm.facts.node import NodeState as NodeStateFact
from pyinfra_vllm.facts.reach import connector_arguments, notice_loss
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.node.blank import blank
from pyinfra_vllm.node.query import Query
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.questions import unasked

_SECONDS = 30
"""A node that has lost its power in the middle of a deploy must not hang it."""

FRESH = 10.0
"""Seconds in which what was seen at prepare holds at execute: without a question in between."""


@dataclass(frozen=True)
class _Seen:
    state: NodeState
    stage: int
    at: float

    def holds(self, stage: int) -> bool:
        return stage == self.stage or time.monotonic() - self.at < FRESH


class _Memo:
    def __init__(self) -> None:
        self.seen: dict[str, _Seen] = {}
        self.locks: dict[str, RLock] = {}
        self.is_lost: set[str] = set()

    def state(self, name: str, stage: int) -> NodeState | None:
        seen = self.seen.get(name)
        return seen.state if seen and seen.holds(stage) else None


# By host.state: pyinfra.state is a stand-in that outlives the states it stands for.
_MEMOS: WeakKeyDictionary[State, _Memo] = WeakKeyDictionary()


def node_state(state: State, host: Host, query_of: Callable[[Host], Query]) -> NodeState:
    """State of one node; a remote command the first time, and after a change.

    Raises Refusal when the node can't be read.
    """
    memo = _memo(host)
    stage = int(state.current_stage)
    with memo.locks.setdefault(host.name, RLock()):
        found = memo.state(host.name, stage)
        if found is None:
            found = _read(state, host, query_of(host))
            memo.seen[host.name] = _Seen(found, stage, time.monotonic())
        return found


def gang_states(
    state: State, hosts: Iterable[Host], query_of: Callable[[Host], Query]
) -> dict[str, NodeState]:
    """States of several nodes by host name, read at the same time.

    Nodes that couldn't be connected to are left out, and so are those that are lost on the
    way, while operations run: the others go on to the gate. Raises Refusal, before that, for
    a node that can't be read.
    """
    hosts = [host for host in hosts if not _is_lost(state, host)]
    results = each_state(state, hosts, query_of)
    problems = {name: str(value) for name, value in results.items() if isinstance(value, Exception)}
    if problems and state.current_stage != StateStage.Execute:
        raise Refusal("\n".join(problems.values()))
    for host in hosts:
        if host.name in problems:
            _memo(host).is_lost.add(host.name)
    return {name: value for name, value in results.items() if isinstance(value, NodeState)}


def each_state(
    state: State, hosts: Iterable[Host], query_of: Callable[[Host], Query]
) -> dict[str, NodeState | Exception]:
    """As ``gang_states``, with the error of each node that can't be read in its place."""
    hosts = list(hosts)
    found: dict[str, NodeState | Exception] = dict(_known(state, hosts))
    asked = [host for host in hosts if host.name not in found]
    if asked:
        asking = ctx_host.get() if ctx_host.isset() else None
        sudo.ask_once(asked, lambda host: connector_arguments(state, host, asking or host))
        jobs = [gevent.spawn(_read_beside, state, host, query_of, asking or host) for host in asked]
        gevent.joinall(jobs)
        found.update({host.name: job.value for host, job in zip(asked, jobs, strict=True)})
    return {host.name: found[host.name] for host in hosts}


def _memo(host: Host) -> _Memo:
    return _MEMOS.setdefault(host.state, _Memo())


def _is_lost(state: State, host: Host) -> bool:
    unreached = not host.connected and host in state.failed_hosts
    return unreached or host.name in _memo(host).is_lost


def _known(state: State, hosts: Iterable[Host]) -> Iterator[tuple[str, NodeState]]:
    """What the memo has for the phase that is running."""
    stage = int(state.current_stage)
    for host in hosts:
        found = _memo(host).state(host.name, stage)
        if found is not None:
            yield host.name, found


def forget(state: State, host: Host) -> None:
    """Drop what is known of a node: something on it has changed."""
    _memo(host).seen.pop(host.name, None)


def last_seen(host: Host) -> NodeState | None:
    """What was read of a node last, if nothing on it has changed since then; asks nobody."""
    seen = _memo(host).seen.get(host.name)
    return seen.state if seen else None


def _read_beside(
    state: State, host: Host, query_of: Callable[[Host], Query], asking: Host
) -> NodeState | Exception:
    try:
        with ctx_host.use(asking):
            return node_state(state, host, query_of)
    except (PyinfraError, ConnectError) as error:
        return error


def _read(state: State, host: Host, query: Query) -> NodeState:
    asking = ctx_host.get() if ctx_host.isset() else host
    arguments = connector_arguments(state, host, asking)
    arguments.pop("_stdin")
    notice_loss(host)
    found = get_fact(
        state,
        host,
        NodeStateFact,
        kwargs={**NodeStateFact.arguments(query), **arguments, "_timeout": _SECONDS},
        apply_failed_hosts=False,
    )
    if not isinstance(found, NodeState):
        raise Refusal(
            f"{host.name}: its state can't be read (see the lines above); "
            "the node needs ssh, python3 >= 3.10 and root (or _sudo)"
        )
    if found == NodeState():
        logger.info(f"{host.print_prefix}no state: planned as a blank node that has the model")
        return blank(query)
    missing = unasked(query, found.query)
    if missing:
        raise Refusal(
            f"{host.name}: its saved state doesn't tell about {', '.join(missing)} of this recipe; "
            "save it anew: pyinfra-vllm facts INVENTORY --save DIR"
        )
    return found
