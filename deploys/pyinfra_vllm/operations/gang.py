"""Operations: the gang's switch to a release, all nodes or none."""

from __future__ import annotations

from pyinfra import host, logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look,
    look_at_gang,
    place,
    show,
    this_node,
)
from pyinfra_vllm.operations.lock import changing, confirm
from pyinfra_vllm.release import FILE_MODE, Release
from pyinfra_vllm.starts import changed_secret, next_wish, predates, restart_reasons, wish


@operation()
@explained
def gate(release: Release) -> Commands:
    """Nothing after this operation runs when a node of the gang has failed before it.

    + release: what the gang is to serve
    """
    if restart_reasons(release, look_at_gang(release)):
        yield from change(called(_gate, {node.name for node in release.content.gang.nodes}))


def _gate(state: State, host: Host, members: set[str]) -> bool:
    lost = sorted(members - {active.name for active in state.active_hosts})
    if lost:
        logger.error(f"{host.print_prefix}nothing is switched: {', '.join(lost)} failed above")
    return not lost


@operation()
@changing
def started(release: Release) -> Commands:
    """The head wants this release, and the unit runs on every node.

    The wish is one rename on the head, and that is the switch: the head kills the gang
    and opens the next start; each node moves its own ``current`` as it starts. Units that
    run are left alone.

    + release: what the gang is to serve
    """
    gang = release.content.gang.name
    here = look(release)
    states = look_at_gang(release)
    reason = restart_reasons(release, states).get(this_node(release).name)
    leads = this_node(release).rank == 0
    renewed = leads and changed_secret(release, states) and wish(release, here).release
    if leads and reason:
        confirm(host)
        show(f"Will ask for release {release.digest[:12]}: {reason}")
        text = next_wish(release, here)
        yield from change(place([placement.file(paths.wanted(gang), text, FILE_MODE)]))
    unit = paths.unit(gang)
    # To ask again for what is wanted stops nobody, and an engine keeps the secrets it got.
    if predates(here) or renewed == release.digest:
        yield from change(StringCommand("systemctl", "restart", unit))
    elif here.unit.required.active in ("inactive", "failed"):
        show(f"Will start {unit}")
        yield from change(
            StringCommand(f"systemctl reset-failed {unit} 2>/dev/null; systemctl start {unit}")
        )
