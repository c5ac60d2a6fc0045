"""Operations: take a gang off a node. Only what is ours goes."""

from __future__ import annotations

import shlex

from pyinfra import host, state
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import image_scripts, placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import unnamed_images
from pyinfra_vllm.facts import survey
from pyinfra_vllm.operations.common import Commands, called, change, place, run, show
from pyinfra_vllm.operations.image_sender import COMMAND
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.remains import Remains, query_of, remains


def _look(gang: str, images: bool = False) -> Remains:
    found = survey.node_state(state, host, lambda _: query_of(gang))
    return remains(gang, found, images)


@operation()
@changing
def stopped(gang: str) -> Commands:
    """The gang's unit doesn't run and isn't started at a boot, and no container of it is left.

    + gang: name of the gang
    """
    found, unit = _look(gang), paths.unit(gang)
    if found.unit or found.is_loaded:
        show(f"Will stop and disable {unit}")
        yield from change(
            StringCommand(f"systemctl --quiet disable --now {unit} 2>/dev/null; "
                          f"systemctl stop {unit} && "
                          f"{{ systemctl reset-failed {unit} 2>/dev/null || true; }}")
        )  # fmt: skip
        found = _look(gang) if state.is_executing else found
    if found.containers:
        show(f"Will remove the container {', '.join(found.containers)}")
        names = " ".join(map(shlex.quote, found.containers.values()))
        yield from change(StringCommand(f"docker rm --force {names} >/dev/null"))


@operation()
@changing
def removed(gang: str, images: bool = False) -> Commands:
    """No file of the gang is left: unit, releases, composed models; of the last gang the agent too.

    The Hugging Face cache and the local copies of Engram shards are never touched.

    + gang: name of the gang
    + images: caches of compiled code go with the last gang
    """
    found = _look(gang, images)
    if not found.paths:
        return
    for path in found.paths:
        show(f"Will remove {path}")
    for line in found.kept:
        show(f"Stays: {line}")
    yield from change(place([placement.remove(path) for path in found.paths]))
    yield from change(StringCommand(_EMPTY_FOLDERS), StringCommand("systemctl", "daemon-reload"))


# Locks of builds are ours; what else is in these folders isn't empty, and stays.
_BUILDS = f"{paths.STATE_ROOT}/builds"
_EMPTY_FOLDERS = (
    f"systemctl is-active --quiet 'pyinfra-vllm-build-*' || rm -f {_BUILDS}/*.lock; "
    f"rmdir {_BUILDS} {paths.STATE_ROOT} {paths.COMPOSED_ROOT} {paths.AGENT.rpartition('/')[0]} "
    "2>/dev/null; true"
)


@operation()
@changing
def images_removed(gang: str) -> Commands:
    """No image of ours is left that neither a release nor a container on the node uses.

    + gang: name of the gang
    """
    known = survey.node_state(state, host, lambda _: query_of(gang))
    unused = unnamed_images(known, gone=gang)
    if not unused:
        return
    for image in unused:
        name = image.tags[0] if image.tags else image.id[:19]
        show(f"Will remove the image {name}: up to {image.size >> 20} MiB")
    yield from change(called(_prune))


def _prune(state: State, host: Host) -> bool:
    ok, _ = run(host, host, StringCommand(COMMAND), True, image_scripts.pruning([]))
    return ok
