"""What of a gang lies on a node that nothing needs any more. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.models import Container
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import Release


def unused_containers(release: Release, state: NodeState) -> list[Container]:
    """Containers with the gang's label that ended; the agent's own one is its business."""
    gang = release.content.gang.name
    return [
        found
        for found in state.containers.required
        if found.labels.get(paths.LABEL_GANG) == gang
        and found.state in ("exited", "dead", "created")
        and found.name != paths.container(gang)
    ]


def unused_paths(release: Release, state: NodeState) -> list[str]:
    """Strangers among the releases, and composed models of releases that aren't there.

    A model that a container has mounted is in use whatever else is true.
    """
    gang = release.content.gang.name
    folder = state.gang.required
    there = {release.digest, *folder.releases}
    there |= {c.labels.get(paths.LABEL_RELEASE, "") for c in state.containers.required}
    found = [f"{paths.gang_root(gang)}/{name}" for name in folder.strangers]
    everything = state.leftovers.value_or(None)
    for name in everything.composed if everything else ():
        of, _, digest = name.partition("/")
        if of == gang and _is_digest(digest) and digest not in there:
            found.append(paths.composed(gang, digest))
    return found


def strange_gangs(release: Release, state: NodeState) -> Iterator[str]:
    """Units of gangs, and their folders, on a node that the inventory has in another one."""
    everything = state.leftovers.value_or(None)
    if everything is None:
        return
    own = release.content.gang.name
    for name in everything.gangs:
        if name != own:
            yield (
                f"gang {name} lies here, and the inventory has the node in gang {own} only; "
                f"to take it off: deploys/teardown.py --data gang={name}"
            )


def _is_digest(name: str) -> bool:
    return len(name) == 64 and not set(name) - set("0123456789abcdef")
