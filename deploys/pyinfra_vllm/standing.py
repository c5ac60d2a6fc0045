"""How a gang stands at the end of a run that didn't have to wait for it. Pure."""

from __future__ import annotations

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.state import NodeState


def standing(release: str, head: NodeState) -> str:
    """Why the gang doesn't serve this release, and what is to be done; "" when it serves it.

    ``head``: the state of its head, as it was read last.
    """
    try:
        unit, status = head.unit.required, head.agent.required.status
    except UserError as error:
        return f"not known whether it serves: {error}"
    if unit.active not in ("active", "activating", "reloading"):
        return f"not serving: its unit is {unit.active or 'unknown'} on the head"
    if status is None or status.pid != unit.main_pid:
        return "not serving yet: the head's agent has just been started"
    if status.phase == "paused":
        return f"{status.detail}; deploys/resume.py starts it"
    if status.phase != "serving":
        return f"not serving: {status.phase}" + (f": {status.detail}" if status.detail else "")
    return "" if status.release == release else f"{(status.release or 'nothing')[:12]} serves"
