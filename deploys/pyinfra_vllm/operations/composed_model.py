"""Operation: the composed model of a node."""

from __future__ import annotations

from pyinfra.api import StringCommand, operation

from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import composed_differences
from pyinfra_vllm.operations.common import Commands, change, look, show, this_node
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release


@operation()
@changing
def linked(release: Release) -> Commands:
    """The directory that is mounted as the model, as the release's manifest says.

    The agent does the work, the same as before every start: beside, then renamed.

    + release: what the gang is to serve
    """
    if release.composed_directory is None:
        return
    differences = composed_differences(release, this_node(release), look(release))
    if not differences:
        return
    differ = "1 link differs" if len(differences) == 1 else f"{len(differences)} links differ"
    show(f"Will compose {release.composed_directory}: {differ}")
    for line in differences[:10]:
        show(f"  {line}")
    yield from change(StringCommand("python3", paths.AGENT, "compose", release.directory))
