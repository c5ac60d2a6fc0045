"""How a gang is now, and how long a start of it takes, from what its head's agent says. Pure."""

from __future__ import annotations

import time

from pyinfra_vllm.node.models import AgentStatus
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.plan import Outage


def gang_state(head: NodeState) -> str:
    """``serving since 02:14 (start 12)``; empty where no agent has run."""
    status = _status(head)
    if status is None or not status.phase:
        return ""
    start = f" (start {status.start})" if status.start else ""
    return f"{status.phase} since {_moment(status.since)}{start}"


def expected_outage(head: NodeState) -> Outage | None:
    """From the last start, when its first completion is known."""
    status = _status(head)
    if status is None or status.phase != "serving" or status.engine_started is None:
        return None
    return Outage(seconds=status.since - status.engine_started, source="the last start")


def _status(head: NodeState) -> AgentStatus | None:
    agent = head.agent.value_or(None)
    return agent.status if agent else None


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
