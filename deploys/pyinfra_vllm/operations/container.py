"""Operation: nobody but the agent starts a container of the gang."""

from __future__ import annotations

from pyinfra.api import StringCommand, operation

from pyinfra_vllm.changes import restarted_by_docker
from pyinfra_vllm.operations.common import Commands, change, look, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release


@operation()
@changing
def unrestarted(release: Release) -> Commands:
    """No container of the gang has a restart policy: docker would start one rank alone.

    + release: what the gang is to serve
    """
    found = restarted_by_docker(release, look(release))
    if not found:
        return
    for container in found:
        show(f"Will take the restart policy {container.restart_policy} from {container.name}")
    names = [container.id for container in found]
    yield from change(StringCommand("docker", "update", "--restart", "no", *names, ">/dev/null"))
