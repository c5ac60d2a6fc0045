"""What differs between a release and the states of the nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.links import Link, plan_links
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.node.models import ComposedEntry, FileState, Image
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import FILE_MODE, Release

States = Mapping[str, NodeState]
"""Node states by node name."""


def file_is_right(found: FileState | None, text: str, mode: int = FILE_MODE) -> bool:
    """Whether a file has this text and mode and belongs to root."""
    return (
        found is not None
        and found.type == "file"
        and found.text == text
        and found.mode == f"{mode:04o}"
        and found.owner == "root"
    )


def image_on(release: Release, state: NodeState) -> Image | None:
    """The release's image on a node: by build digest, by tag when others made it."""
    build = release.content.build
    if build is None:
        return state.image_tagged(release.content.recipe.docker_image)
    return state.image_of(build)


def image_source(release: Release, states: States) -> Node | None:
    """First node in rank order that has the image."""
    gang = release.content.gang
    return next((node for node in gang.nodes if image_on(release, states[node.name])), None)


def image_lacking(release: Release, states: States) -> list[Node]:
    """Nodes without the image, or with other content than the source's."""
    source = image_source(release, states)
    if source is None:
        return list(release.content.gang.nodes[1:])
    there = image_on(release, states[source.name])
    lacking = []
    for node in release.content.gang.nodes:
        here = image_on(release, states[node.name])
        if here is None or there is None or here.layers != there.layers:
            lacking.append(node)
    return lacking


def composed_differences(release: Release, node: Node, state: NodeState) -> list[str]:
    """One line for each entry of the composed model that isn't as planned."""
    manifest = release.manifest(node)
    if manifest is None:
        return []
    entries = {
        snapshot.path: snapshot.entries
        for snapshot in state.snapshots.required
        if snapshot.path is not None
    }
    plan = plan_links(manifest, entries)
    present = _entries_of(release, state)
    lines = [
        f"{name}: {problem}"
        for name, link in plan.items()
        if (problem := _link_problem(link, present.get(name), state))
    ]
    return lines + [f"{name}: is not of this model" for name in present if name not in plan]


def _entries_of(release: Release, state: NodeState) -> dict[str, ComposedEntry]:
    everything = state.composed_directory(paths.composed_root(release.content.gang.name))
    prefix = f"{release.digest}/"
    if everything is None:
        return {}
    return {
        name.removeprefix(prefix): entry
        for name, entry in everything.entries.items()
        if name.startswith(prefix)
    }


def _link_problem(link: Link, found: ComposedEntry | None, state: NodeState) -> str | None:
    if found is None:
        return "is missing"
    if link.kind == "symbolic":
        if found.type != "link":
            return f"is a {found.type}, expected a link to {link.target}"
        return None if found.target == link.target else f"links to {found.target}"
    local = state.local_file(link.target)
    if local is None:
        return f"{link.target} is missing"
    same = (found.device, found.inode) == (local.device, local.inode)
    return None if same else f"is not the inode of {link.target}"


def restart_reasons(release: Release, states: States) -> dict[str, str]:
    """Node -> why the gang must be started anew for this release; empty: it serves it."""
    found = {
        node.name: _restart_reason(release, states[node.name])
        for node in release.content.gang.nodes
    }
    return {name: reason for name, reason in found.items() if reason}


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
    return None if runs == release.digest else f"the container runs {_short(runs)}"


def _prepares(release: Release, state: NodeState) -> bool:
    """Whether the agent is on its way to start an engine of this release."""
    status = state.agent.required.status
    return (
        status is not None
        and status.release == release.digest
        and status.phase in ("preparing", "waiting")
    )


def serves(release: Release, states: States) -> bool:
    """Whether all ranks run this release and the head's agent has seen a completion."""
    status = states[release.content.gang.head.name].agent.required.status
    return (
        not restart_reasons(release, states)
        and status is not None
        and status.phase == "serving"
        and status.release == release.digest
    )


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "nothing"
