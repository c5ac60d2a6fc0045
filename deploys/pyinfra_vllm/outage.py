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
    switches = past.switches if past else ()
    same = [one for one in switches if one.release == release]
    known = _of(same, "to this release") or _of(switches, "to other releases")
    status = _status(head)
    if known or status is None or status.phase != "serving" or status.engine_started is None:
        return known
    return Outage(seconds=status.since - status.engine_started, source="the last start")


def _of(switches: Sequence[Switch], which: str) -> Outage | None:
    """The median of the last ones; where no service was replaced, the engine's start is known."""
    without = [one.without for one in switches if one.without is not None and _is_its_own(one)]
    engines = [one.engine for one in switches if one.engine is not None]
    last = (without or engines)[-_LAST:]
    if not last:
        return None
    what = f"the last {len(last)} switches" if len(last) > 1 else "the last switch"
    start = "" if without else "the engine's start in "
    return Outage(seconds=median(last), source=f"{start}{what} {which}")


def _is_its_own(switch: Switch) -> bool:
    """Whether the time without service is that of the switch.

    A gang that was paused or broken for long before it was served long without.
    """
    if switch.without is None or switch.engine is None:
        return True
    return switch.without <= 2 * switch.engine + 60


def _status(head: NodeState) -> AgentStatus | None:
    agent = head.agent.value_or(None)
    return agent.status if agent else None


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
