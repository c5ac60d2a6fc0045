"""Operation: what the gang no longer needs in places that are its own."""

from __future__ import annotations

from pyinfra import logger
from pyinfra.api import StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.leftovers import strange_gangs, unused_containers, unused_paths
from pyinfra_vllm.operations.common import Commands, change, look, place, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release


@operation()
@changing
def removed(release: Release) -> Commands:
    """Containers that ended, composed models of no release, and strangers among the releases.

    Only what has the gang's label, or lies in a folder of the gang, is removed. A gang that
    the inventory doesn't declare is named, and left alone: it may be serving.

    + release: what the gang is to serve
    """
    state = look(release)
    for name in strange_gangs(release, state):
        logger.warning(f"{state.system.required.hostname}: {name}")
    containers, unused = unused_containers(release, state), unused_paths(release, state)
    for container in containers:
        show(f"Will remove the container {container.name}: it is {container.state}")
    for path in unused:
        show(f"Will remove {path}: no release here has it")
    if containers:
        names = [container.id for container in containers]
        yield from change(StringCommand("docker", "rm", "--volumes", *names, ">/dev/null"))
    if unused:
        yield from change(place([placement.remove(path) for path in unused]))
