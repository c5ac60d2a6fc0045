"""Operations: the gang's units stopped and started together."""

from __future__ import annotations

from pyinfra import logger
from pyinfra.api import FunctionCommand, Host, State, StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations.common import (
    Commands,
    change,
    explained,
    look,
    look_at_gang,
    place,
    show,
    this_node,
)
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import restart_reasons


@operation()
@explained
def gate(release: Release) -> Commands:
    """Nothing after this operation runs when a node of the gang has failed before it.

    + release: what the gang is to serve
    """
    members = {node.name for node in release.content.gang.nodes}
    if not restart_reasons(release, look_at_gang(release)):
        return

    # pyinfra takes the result only of a function with exactly these parameters.
    def gate(state: State, host: Host) -> bool:
        lost = sorted(members - {active.name for active in state.active_hosts})
        if lost:
            logger.error(f"{host.print_prefix}nothing is switched: {', '.join(lost)} failed above")
        return not lost

    yield from change(FunctionCommand(gate, (), {}))


@operation()
@explained
def stopped(release: Release) -> Commands:
    """No engine runs that isn't of this release: a gang is started anew as a whole.

    + release: what the gang is to serve
    """
    reasons = restart_reasons(release, look_at_gang(release))
    if not reasons:
        return
    for name, reason in reasons.items():
        if name == this_node(release).name:
            show(f"Will restart the gang: {reason}")
    if look(release).unit.required.active not in ("inactive", "failed"):
        unit = paths.unit(release.content.gang.name)
        yield from change(StringCommand("systemctl", "stop", unit))


@operation()
@explained
def started(release: Release) -> Commands:
    """``current`` names the release and the unit runs.

    + release: what the gang is to serve
    """
    gang = release.content.gang.name
    here = look(release)
    inactive = here.unit.required.active in ("inactive", "failed")
    if not inactive and not restart_reasons(release, look_at_gang(release)):
        return
    if here.current_release != release.digest:
        show(f"Will switch {paths.current(gang)} to {release.digest[:12]}")
        yield from change(
            place([placement.link(paths.current(gang), f"releases/{release.digest}")])
        )
    unit = paths.unit(gang)
    yield from change(
        StringCommand(
            f"rm -f {paths.status_file(gang)}; systemctl reset-failed {unit} 2>/dev/null; "
            f"systemctl start {unit}"
        )
    )
