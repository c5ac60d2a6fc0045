"""Deploy: take a gang off its nodes."""

from __future__ import annotations

from pyinfra import host, logger, state
from pyinfra.api import State, deploy

from pyinfra_vllm import remains
from pyinfra_vllm.cluster import MAIN
from pyinfra_vllm.deploys import data
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.inventory import members, selected_gang
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.gangs import Members
from pyinfra_vllm.operations import lock
from pyinfra_vllm.operations import teardown as operations
from pyinfra_vllm.suggest import did_you_mean


@deploy("Teardown", data_defaults={"vllm_gang": MAIN, "gang": None, "images": False})
def teardown() -> None:
    """Remove unit, containers, releases and composed models of a gang from its nodes.

    Data: ``gang`` says which where the inventory has several, or one that it has no more;
    ``images=true`` removes our images, too. The Hugging Face cache, the copies of Engram shards
    and what is not ours stay. A node that can't be reached is named; the others are done.
    """
    data.refuse_misspelt(host)
    known = members(host)
    try:
        gang = selected_gang(host)
        images = data.flag(host, "images")
        if gang not in known.names:
            _refuse_nowhere(state, known, gang)
    except UserError as error:
        raise Refusal(str(error)) from None
    there = known.of(gang) or list(known.nodes)
    if host.name not in there:
        return
    lost = sorted(one.name for one in state.failed_hosts if one.name in there)
    if lost and host.name == next(name for name in there if name not in lost):
        logger.warning(f"{', '.join(lost)}: can't be reached, nothing is removed there; run this "
                       "again when it is back")  # fmt: skip
    lock.guard(state, host, gang, known.head(there), "teardown")
    operations.stopped(name="Gang: stopped", gang=gang)
    operations.removed(name="Gang: files removed", gang=gang, images=images)
    if images:
        operations.images_removed(name="Images: removed", gang=gang)
    lock.released(name="Gang: lock given back")


def _refuse_nowhere(state: State, known: Members, gang: str) -> None:
    """UserError when no node has anything of a gang that the inventory hasn't either."""
    hosts = [one for one in state.active_hosts if one.name in known.nodes]
    states = survey.gang_states(state, hosts, lambda _: remains.query_of(gang))
    for name, found in states.items():
        try:
            if remains.has(gang, found):
                return
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    lost = sorted(one.name for one in state.failed_hosts if one.name in known.nodes)
    away = f" ({', '.join(lost)} can't be reached)" if lost else ""
    names = {name for found in states.values() for name in found.leftovers.required.gangs}
    why = did_you_mean(gang, names.union(known.names))
    raise UserError(f"gang={gang}: neither the inventory nor a node has it{away}; {why}")
