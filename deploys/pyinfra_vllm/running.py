"""Whether the engine that runs on a node is the one of the release. Pure.

A file may be as it should be and the container be of another time: started from a file that
somebody had changed, by an older agent, or from another image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyinfra_vllm import docker_options
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import image_on
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.node.collect.secrets import masked
from pyinfra_vllm.node.models import Container
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.release import Release

_FOUND_AT_START = "NCCL_IB_GID_INDEX"


def differences(
    release: Release, node: Node, state: NodeState, layers: Sequence[str] | None = None
) -> list[str]:
    """One line for each way in which a running engine isn't that of the release.

    ``layers``: content that the image is to have, which may differ from what the node has.
    Empty while the node is on its way: only an engine that belongs to the agent's own start
    is judged.
    """
    container = _container(release, state)
    if container is None or not runs_here(release, state):
        return []
    files = release.files(node)
    launch = json.loads(files["launch.json"])
    return [
        *_labels(launch, container),
        *_image(release, state, container, layers),
        *_argv(launch, container),
        *_environ(launch, state, container),
        *_mounts(launch, state, container),
        *_options(launch, files["seccomp.json"], container),
    ]


def runs_here(release: Release, state: NodeState) -> bool:
    """Whether an engine runs that the agent has started as this release, in its present start."""
    container = _container(release, state)
    status = state.agent.required.status
    if container is None or not container.running or status is None:
        return False
    return (
        status.release == release.digest
        and status.pid == state.unit.required.main_pid
        and status.phase in ("starting", "serving")
        and container.labels.get(paths.LABEL_START) == str(status.start)
    )


def _container(release: Release, state: NodeState) -> Container | None:
    """The gang's container; None also where docker can't be asked, which others complain of."""
    name = paths.container(release.content.gang.name)
    return next((found for found in state.containers.value_or(()) if found.name == name), None)


def _labels(launch: Mapping[str, Any], container: Container) -> Iterator[str]:
    for name, value in launch["labels"].items():
        if container.labels.get(name) != value:
            yield f"label {name} is {container.labels.get(name, 'missing')}, not {value}"


def _image(
    release: Release, state: NodeState, container: Container, layers: Sequence[str] | None
) -> Iterator[str]:
    if layers is not None and container.layers is not None:
        if tuple(layers) != container.layers:
            yield f"image is {container.image[:19]}, not that of the release"
        return
    build = release.content.build
    tagged = image_on(release, state)
    ids = {image.id for image in state.images.required if build and image.build == build}
    right = ids or ({tagged.id} if tagged else set())
    if right and container.image not in right:
        yield f"image is {container.image[:19]}, not that of the release"


def _argv(launch: Mapping[str, Any], container: Container) -> Iterator[str]:
    if container.argv is None:
        return
    wanted = masked(launch["argv"])
    extra = [word for word in container.argv if word not in wanted]
    lacking = [word for word in wanted if word not in container.argv]
    if extra or lacking:
        said = [f"without {' '.join(lacking)}"] * bool(lacking)
        said += [f"with {' '.join(extra)}"] * bool(extra)
        yield f"argv is {' and '.join(said)}"
    elif list(container.argv) != wanted:
        yield "argv is in another order"


def _environ(launch: Mapping[str, Any], state: NodeState, container: Container) -> Iterator[str]:
    if container.environ is None:
        return
    wanted: dict[str, str] = launch["environ"]
    for name, value in wanted.items():
        if name not in container.environ:
            yield f"environ lacks {name}"
        elif container.environ[name] not in (value, None):
            yield f"environ has {name}={container.environ[name]}, not {value}"
    image = next((one for one in state.images.required if one.id == container.image), None)
    if image is None or image.environ is None:
        return
    known = {*wanted, *launch["secrets"], *image.environ, _FOUND_AT_START}
    for name in sorted(set(container.environ) - known):
        yield f"environ has {name}, which the release doesn't set"


def _mounts(launch: Mapping[str, Any], state: NodeState, container: Container) -> Iterator[str]:
    wanted = {(m["source"], m["target"], m["read_only"]) for m in launch["mounts"]}
    docker = state.docker.value_or(None)
    volumes = f"{docker.data_root}/" if docker else "/var/lib/docker/"
    found = {
        (mount.source, mount.target, mount.read_only)
        for mount in container.mounts
        if not mount.source.startswith(volumes)
    }
    for source, target, read_only in sorted(found ^ wanted):
        verb = "has" if (source, target, read_only) in found else "lacks"
        yield f"container {verb} the mount {source} -> {target}{' (read-only)' * read_only}"


def _options(launch: Mapping[str, Any], seccomp: str, container: Container) -> Iterator[str]:
    if container.options is None:
        return
    wanted = docker_options.told(launch["options"], seccomp)
    yield from docker_options.differences(wanted, container.options)
    if "--gpus" in launch["options"] and not container.gpu:
        yield "container lacks --gpus"
