"""Operations: the gang's switch to a release, all nodes or none."""

from __future__ import annotations

from pyinfra import host, logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.state import NodeState
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
from pyinfra_vllm.starts import (
    Order,
    is_lent,
    next_wish,
    predates,
    renewal_reason,
    restart_reasons,
    wish,
)


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
def joined(release: Release) -> Commands:
    """The unit runs on every node but the head; without a head that wants a start, they wait.

    They run before the head is asked for anything: from then on it needs no controller.

    + release: what the gang is to serve
    """
    here = look(release)
    if this_node(release).rank == 0:
        return
    if predates(here):
        yield from change(StringCommand("systemctl", "restart", _unit(release)))
    elif _is_down(here):
        yield from _start(release)


@operation()
@changing
def started(release: Release, order: Order) -> Commands:
    """The head wants this release.

    The wish is one rename on the head, and that is the switch: the head kills the gang
    and opens the next start; each node moves its own ``current`` as it starts. Units that
    run are left alone.

    + release: what the gang is to serve
    + order: how it is asked for
    """
    if this_node(release).rank != 0:
        return
    here, states = look(release), look_at_gang(release)
    gang = release.content.gang.name
    reason = restart_reasons(release, states).get(this_node(release).name)
    renewed = renewal_reason(release, states) and wish(gang, here).release
    if reason:
        confirm(host)
        show(f"Will ask for release {release.digest[:12]}: {reason}")
        text = next_wish(gang, release.digest, here, order)
        yield from change(place(asking(gang, text, order)))
    # To ask again for what is wanted stops nobody, and an engine stays as it was started.
    if predates(here) or renewed == release.digest:
        yield from change(StringCommand("systemctl", "restart", _unit(release)))
    elif _is_down(here):
        yield from _start(release)


@operation()
@changing
def kept(release: Release, order: Order) -> Commands:
    """A release that is only lent to a trial stays; nobody restarts for it.

    The trial is gone: while it lives it holds the gang's lock.

    + release: what the gang is to serve
    + order: how it is asked for
    """
    here, gang = look(release), release.content.gang.name
    if this_node(release).rank != 0 or not is_lent(release, here):
        return
    confirm(host)
    show(f"Will keep release {release.digest[:12]}, which is only lent to a trial")
    text = next_wish(gang, release.digest, here, order)
    yield from change(place(asking(gang, text, order)))


def asking(gang: str, text: str, order: Order) -> list[placement.Action]:
    """What makes the head want something; a lease is fresh when it reads the wish."""
    lease = [placement.file(paths.lease(gang), "", FILE_MODE)] if order.lease else []
    return [*lease, placement.file(paths.wanted(gang), text, FILE_MODE)]


def _unit(release: Release) -> str:
    return paths.unit(release.content.gang.name)


def _is_down(here: NodeState) -> bool:
    return here.unit.required.active in ("inactive", "failed")


def _start(release: Release) -> Commands:
    unit = _unit(release)
    show(f"Will start {unit}")
    yield from change(
        StringCommand(f"systemctl reset-failed {unit} 2>/dev/null; systemctl start {unit}")
    )
