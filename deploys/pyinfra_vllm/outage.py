"""How a gang is now, and how long it would not serve, from what its head's agent says. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from pyinfra_vllm.node.models import AgentStatus, Switch
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.plan import Outage

_LAST = 3
"""So many switches are looked at: engines and nodes change with time."""


def gang_state(head: NodeState) -> str:
    """``serving since 02:14 (start 12)``; empty where no agent has run."""
    status = _status(head)
    if status is None or not status.phase:
        return ""
    start = f" (start {status.start})" if status.start else ""
    return f"{status.phase} since {_moment(status.since)}{start}"


def expected_outage(head: NodeState, release: str) -> Outage | None:
    """What switches to this release have cost on this head, else those to other ones.

    None where none has come to serve and the start that goes on hasn't either.
    """
    past = head.past.value_or(None)
    switches = [one for one in (past.switches if past else ()) if _cost(one) is not None]
    same = [one for one in switches if one.release == release]
    if same:
        return _of(same, "to this release")
    if switches:
        return _of(switches, "to other releases")
    status = _status(head)
    if status is None or status.phase != "serving" or status.engine_started is None:
        return None
    return Outage(seconds=status.since - status.engine_started, source="the last start")


def _of(switches: Sequence[Switch], which: str) -> Outage:
    last = switches[-_LAST:]
    seconds = median(cost for one in last if (cost := _cost(one)) is not None)
    what = f"last {len(last)} switches" if len(last) > 1 else "last switch"
    return Outage(seconds=seconds, source=f"the {what} {which}")


def _cost(switch: Switch) -> float | None:
    """Seconds without service of a switch.

    A gang that was paused or broken for long before it was served long without: then only the
    start of the engine tells what a switch takes.
    """
    engine, without = switch.engine, switch.without
    if engine is None or without is None:
        return engine if without is None else without
    return without if without <= 2 * engine + 60 else engine


def _status(head: NodeState) -> AgentStatus | None:
    agent = head.agent.value_or(None)
    return agent.status if agent else None


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
