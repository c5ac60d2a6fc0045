"""Which releases on the nodes nobody would go back to. Pure."""

from __future__ import annotations

from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import wish

KEPT = 2
"""So many releases beside those in use are kept, the newest ones: to go back to, or staged."""


def old_releases(release: Release, states: States) -> dict[str, list[str]]:
    """Node -> digests of releases there that are neither in use nor among the newest.

    Kept on all nodes: what the head wants, its previous and earlier ones, and the newest on the
    head; on each node what it last started, and what a container runs. Empty without the head.
    """
    gang = release.content.gang
    head = states.get(gang.head.name)
    if head is None:
        return {}
    asked = wish(gang.name, head)
    kept = {release.digest, asked.release, asked.previous, *asked.earlier}
    there = head.gang.required.releases
    others = sorted(set(there) - kept, key=lambda digest: there[digest].modified)
    kept |= set(others[-KEPT:])
    return {
        name: sorted(set(state.gang.required.releases) - kept - _in_use(state))
        for name, state in states.items()
    }


def _in_use(state: NodeState) -> set[str | None]:
    runs = {one.labels.get(paths.LABEL_RELEASE) for one in state.containers.required if one.ours}
    return {state.gang.required.current_release, *runs}
