"""Operation: the agent's program on a node."""

from __future__ import annotations

from pyinfra.api import operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent_archive import archive, archive_digest
from pyinfra_vllm.operations.common import Commands, change, look, place, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release


@operation()
@changing
def installed(release: Release) -> Commands:
    """The agent that belongs to this version of the project, after its own test on the node.

    A serving gang isn't restarted for it: the next start runs the new one.

    + release: what the gang is to serve
    """
    found = look(release).file(paths.AGENT)
    wanted = archive_digest()
    right = ("file", wanted, "0755", "root")
    if found and (found.type, found.sha256, found.mode, found.owner) == right:
        return
    was = "nothing"
    if found:
        was = f"{(found.sha256 or found.type)[:12]}, mode {found.mode}, owner {found.owner}"
    show(f"Will install {paths.AGENT} {wanted[:12]} (is: {was})")
    check = ["python3", "{path}", "selftest"]
    yield from change(place([placement.file(paths.AGENT, archive(), 0o755, check)]))
