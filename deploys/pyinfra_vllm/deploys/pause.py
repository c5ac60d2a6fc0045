"""Deploy: pause a gang."""

from __future__ import annotations

import datetime

from pyinfra import host, state
from pyinfra.api import deploy

from pyinfra_vllm import controller
from pyinfra_vllm.cluster import MAIN
from pyinfra_vllm.deploys import data
from pyinfra_vllm.facts.inventory import gang_of
from pyinfra_vllm.operations import lock
from pyinfra_vllm.operations import pause as operations


@deploy("Pause", data_defaults={"vllm_gang": MAIN, "gang": None, "why": ""})
def pause(why: str | None = None) -> None:
    """The gang of this host stops serving until it is resumed; ``why`` (else ``--data why=…``).

    Only the head is touched; whatever is asked of other hosts does nothing. Data: ``gang``
    confines it to one gang of the inventory.
    """
    if not data.concerns(host) or host.data.get("vllm_rank") != 0:
        return
    gang = gang_of(host)
    lock.guard(state, host, gang, host.name, "pause")
    operations.paused(
        name="Gang: paused",
        gang=gang,
        who=controller.user(),
        when=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        why=str(why or host.data.get("why") or "no reason given"),
    )
    lock.released(name="Gang: lock given back")
