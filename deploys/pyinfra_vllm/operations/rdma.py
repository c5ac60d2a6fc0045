"""Operation: the proof that a started gang speaks over RDMA."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import fabric_proof
from pyinfra_vllm.agent import paths
from pyinfra_vllm.fabric_proof import Before
from pyinfra_vllm.facts import survey
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look,
    run,
    this_node,
)
from pyinfra_vllm.release import Release

_REMEDY = (
    "see: journalctl -u {unit} | grep NCCL, with NCCL_DEBUG=INFO in the recipe's env; "
    "a gang that is meant to use sockets has vllm_hcas=[] in the inventory"
)


@operation()
@explained
def proven(release: Release, before: Mapping[str, Before]) -> Commands:
    """After a start, the RDMA devices of every rank have carried its first completion.

    A gang whose inventory has no RDMA (``vllm_hcas`` empty) is not asked.

    + release: what the gang is to serve
    + before: node -> its ports before the start; empty when nothing is started
    """
    node = this_node(release)
    if node.hcas and release.content.gang.size > 1 and node.name in before:
        yield from change(called(_prove, release, before[node.name]))


def _prove(state: State, host: Host, release: Release, before: Before) -> bool:
    gang = release.content.gang
    if gang.head.name not in {active.name for active in state.active_hosts}:
        return True  # it never served, which has been said
    survey.forget(state, host)
    after = look(release, host).rdma.required
    unit = paths.unit(gang.name)
    command = StringCommand(
        f"journalctl --no-pager -q -o cat -u {unit} --since @{before.at:.0f} "
        "| grep -F NET/ | tail -n 50; true"
    )
    _, output = run(host, host, command)
    lines = output.stdout_lines
    why = fabric_proof.verdict(gang.node(host.name).hcas, before.rdma, after, lines)
    if why:
        logger.error(f"{host.print_prefix}{why}; {_REMEDY.format(unit=unit)}")
    return why is None
