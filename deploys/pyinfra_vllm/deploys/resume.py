"""Deploy: resume a gang."""

from __future__ import annotations

from pyinfra import host, state
from pyinfra.api import deploy

from pyinfra_vllm import controller
from pyinfra_vllm.cluster import MAIN
from pyinfra_vllm.deploys import data
from pyinfra_vllm.facts.inventory import gang_of
from pyinfra_vllm.operations import lock
from pyinfra_vllm.operations import pause as operations


@deploy("Resume", data_defaults={"vllm_gang": MAIN, "gang": None})
def resume() -> None:
    """The gang of this host serves again what it was last asked to serve.

    Ends a pause, and lets a head try again that gave up. Only the head is touched.
    Data: ``gang`` confines it to one gang of the inventory.
    """
    if not data.concerns(host) or host.data.get("vllm_rank") != 0:
        return
    gang = gang_of(host)
    lock.guard(state, host, gang, host.name, "resume")
    operations.resumed(name="Gang: resumed", gang=gang, by=controller.about())
    lock.released(name="Gang: lock given back")
