"""What differs between a release and the states of the nodes. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Set

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.links import Link, plan_links
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.models import ComposedEntry, Container, FileState, Image
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.questions import SHARE_UNIT_FILE
from pyinfra_vllm.release import FILE_MODE, Release

States = Mapping[str, NodeState]
"""Node states by node name."""


def nodes_of(release: Release, states: States) -> list[Node]:
    """The gang's nodes that are known, in rank order: those that can be reached."""
    return [node for node in release.content.gang.nodes if node.name in states]


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
    return state.image_of(build, release.content.recipe.docker_image)


def image_source(release: Release, states: States) -> Node | None:
    """First node in rank order that has the image."""
    there = nodes_of(release, states)
    return next((node for node in there if image_on(release, states[node.name])), None)


def image_layers(release: Release, states: States) -> tuple[str, ...] | None:
    """The content that the image has where it comes from, and is to have everywhere."""
    source = image_source(release, states)
    found = image_on(release, states[source.name]) if source else None
    return found.layers if found else None


def image_lacking(release: Release, states: States) -> list[Node]:
    """Nodes without the image, or with other content than the source's."""
    layers = image_layers(release, states)
    if layers is None:
        return [node for node in nodes_of(release, states) if node.rank]
    lacking = []
    for node in nodes_of(release, states):
        here = image_on(release, states[node.name])
        if here is None or here.layers != layers:
            lacking.append(node)
    return lacking


def images_differ(release: Release, states: States) -> bool:
    """Whether some node needs an image, or still offers one."""
    if image_source(release, states) is None or image_lacking(release, states):
        return True
    return any(state.file(SHARE_UNIT_FILE) for state in states.values())


def unused_images(release: Release, state: NodeState, old: Collection[str] = ()) -> list[Image]:
    """Images of ours on a node that no release and no container there uses.

    ``old``: releases that are about to be removed. Empty on a node with other gangs, whose
    releases aren't in this state, or where it isn't known whether there are any.
    """
    return unnamed_images(state, release.content.gang.name, {release.content.build}, old=old)


def unnamed_images(
    state: NodeState,
    gang: str = "",
    keep: Set[str | None] = frozenset(),
    gone: str = "",
    old: Collection[str] = (),
) -> list[Image]:
    """As :func:`unused_images`, of the gang that the state is about; ``gone``: it goes away."""
    others = state.leftovers.value_or(None)
    if others is None or set(others.gangs) - {gang, gone}:
        return []
    builds = set(keep)
    for digest, found in ({} if gone else state.gang.required.releases).items():
        if digest in old:
            continue
        launch = found.files.get("launch.json")
        if launch is None or launch.text is None:
            return []
        try:
            builds.add(json.loads(launch.text)["image"]["build"])
        except (ValueError, KeyError, TypeError):
            return []
    used = {container.image for container in state.containers.required}
    labelled = [image for image in state.images.required if image.build]
    return [image for image in labelled if image.build not in builds and image.id not in used]


def restarted_by_docker(release: Release, state: NodeState) -> list[Container]:
    """Containers of the gang that docker would start again by itself."""
    gang = release.content.gang.name
    return [
        found
        for found in state.containers.required
        if found.labels.get(paths.LABEL_GANG) == gang and found.restart_policy not in ("", "no")
    ]


def composed_differences(release: Release, node: Node, state: NodeState) -> list[str]:
    """One line for each entry of the composed model that isn't as planned.

    UserError when no such model can be composed of what the node has.
    """
    manifest = release.manifest(node)
    if manifest is None:
        return []
    entries = {
        snapshot.path: snapshot.entries
        for snapshot in state.snapshots.required
        if snapshot.path is not None
    }
    try:
        plan = plan_links(manifest, entries)
    except Unmet as unmet:
        raise UserError(f"composed model: {unmet}") from None
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
    if link.kind == "copy":
        same = found.type == "file" and found.size == local.size
        return None if same else f"is no copy of {link.target}"
    same = (found.device, found.inode) == (local.device, local.inode)
    return None if same else f"is not the inode of {link.target}"
