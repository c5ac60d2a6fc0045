"""Whether a gang runs a release, and runs it together: from the states of its nodes. Pure."""

from __future__ import annotations

from pyinfra_vllm import secret_values
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States, nodes_of
from pyinfra_vllm.node.models import AgentStatus
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import Release

TOGETHER = 60.0
"""Seconds within which the units of one start begin."""

_ROUNDING = 2.0


def restart_reasons(release: Release, states: States) -> dict[str, str]:
    """Node -> why the gang must be started anew for this release; empty: it runs it.

    Of nodes that aren't in ``states`` nothing is known, and they are no reason.
    """
    found = {
        node.name: _restart_reason(release, states[node.name]) for node in nodes_of(release, states)
    }
    reasons = {name: reason for name, reason in found.items() if reason}
    return reasons or _started_alone(release, states)


def serves(release: Release, states: States) -> bool:
    """Whether all ranks run this release and the head's agent has seen a completion."""
    return not restart_reasons(release, states) and _head_serves(release, states)


def last_failures(release: Release, states: States) -> dict[str, float]:
    """Node -> when its engine of this release has died (Unix seconds of the node), if it has."""
    found = {name: state.agent.required.status for name, state in states.items()}
    return {
        name: status.last_failure.at
        for name, status in found.items()
        if status and status.last_failure and status.last_failure.release == release.digest
    }


def _restart_reason(release: Release, state: NodeState) -> str | None:
    unit = state.unit.required
    if state.current_release != release.digest:
        return f"{_short(state.current_release)} is current, {_short(release.digest)} is wanted"
    if unit.active not in ("active", "activating", "reloading"):
        return f"the unit is {unit.active}"
    container = state.container(paths.container(release.content.gang.name))
    if (container is None or not container.running) and _prepares(release, state):
        return None
    if container is None:
        return "there is no container"
    if not container.running:
        return f"the container is {container.state} (exit code {container.exit_code})"
    runs = container.labels.get(paths.LABEL_RELEASE)
    if runs != release.digest:
        return f"the container runs {_short(runs)}"
    return _changed_secret(release, state)


def _changed_secret(release: Release, state: NodeState) -> str | None:
    """The engine got its secrets when it started: whoever changes one starts the gang anew."""
    found, known = state.secrets.required, release.content.secrets
    changed = [
        *secret_values.differing(known, found),
        *secret_values.not_in_use(release.content.recipe.secrets, found),
    ]
    return f"secret {changed[0]} has changed" if changed else None


def _prepares(release: Release, state: NodeState) -> bool:
    """Whether the agent is on its way to start an engine of this release."""
    status = _status(release, state)
    return status is not None and status.phase in ("preparing", "waiting")


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


def _started_alone(release: Release, states: States) -> dict[str, str]:
    """Ranks that came back without the others: they wait at a rendezvous that is over.

    All times are ages by the node's own clock, so the clocks need not agree.
    """
    gang = release.content.gang
    if gang.size == 1:
        return {}
    units = {node.name: _unit_age(states[node.name]) for node in nodes_of(release, states)}
    if _head_serves(release, states):
        served = _age(states[gang.head.name], _since(states[gang.head.name]))
        late = {name for name, age in units.items() if age + _ROUNDING < served}
        return dict.fromkeys(late, "it was started again after the gang's first completion")
    failed = last_failures(release, states)
    if failed:
        return dict.fromkeys(failed, "its engine has died since the gang was started")
    first = max(units.values())
    late = {name for name, age in units.items() if age + TOGETHER < first}
    return dict.fromkeys(late, "it was started later than the others")


def _unit_age(state: NodeState) -> float:
    return _age(state, state.unit.required.active_since)


def _since(state: NodeState) -> float | None:
    status = state.agent.required.status
    return status.since if status else None


def _age(state: NodeState, moment: float | None) -> float:
    return state.system.required.now - moment if moment else 0.0


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "nothing"
