"""Deploy: take a gang off its nodes."""

from __future__ import annotations

from pyinfra import host, logger, state
from pyinfra.api import deploy

from pyinfra_vllm.cluster import MAIN
from pyinfra_vllm.deploys import data
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.inventory import members, selected_gang
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.operations import lock
from pyinfra_vllm.operations import teardown as operations


@deploy("Teardown", data_defaults={"vllm_gang": MAIN, "gang": None, "images": False})
def teardown() -> None:
    """Remove unit, containers, releases and composed models of a gang from its nodes.

    Data: ``gang`` says which where the inventory has several, or one that it has no more;
    ``images=true`` removes our images, too. The Hugging Face cache, the copies of Engram shards
    and what is not ours stay. A node that can't be reached is named; the others are done.
    """
    try:
        gang = selected_gang(host)
        images = data.flag(host, "images")
    except UserError as error:
        raise Refusal(str(error)) from None
    known = members(host)
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
