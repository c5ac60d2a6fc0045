"""What each operation of the main deploy costs those who are being served. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Consequence = Literal["restart", "quiet", "staging", "watch"]

TITLES: Mapping[Consequence, str] = {
    "restart": "restarts the gang",
    "quiet": "changes without restart",
    "staging": "only staging",
    "watch": "then watched",
}
"""How people call each one. The last changes nothing on a node: it looks, or waits."""

OPERATIONS: Mapping[str, Consequence] = {
    "image.built": "staging",
    "image.loaded": "staging",
    "image.offered": "staging",
    "image.present": "staging",
    "image.withdrawn": "staging",
    "agent.installed": "quiet",
    "release.staged": "staging",
    "release.named": "quiet",
    "secret_values.placed": "quiet",
    "members.known": "quiet",
    "secret.shared": "quiet",
    "composed_model.linked": "staging",
    "unit.installed": "quiet",
    "container.unrestarted": "quiet",
    "leftovers.removed": "quiet",
    "arguments.checked": "watch",
    "gang.gate": "watch",
    "window.opened": "restart",
    "window.closed": "restart",
    "foreign.stopped": "restart",
    "moving.head_stopped": "restart",
    "moving.ranks_known": "restart",
    "gang.joined": "restart",
    "gang.started": "restart",
    "gang.kept": "quiet",
    "ready.ready": "watch",
    "rdma.proven": "watch",
    "release.pruned": "quiet",
    "image.pruned": "quiet",
    "lock.released": "watch",
}
"""Operation, by module and function -> its consequence. Staging lays down what no running
engine reads; what is quiet is read by running agents, or by systemd."""


def of(operation: str) -> Consequence:
    """The consequence of an operation; one that nobody has judged is not called harmless."""
    return OPERATIONS.get(operation, "restart")
