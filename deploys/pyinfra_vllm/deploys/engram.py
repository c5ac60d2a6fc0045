"""The deploy that makes local copies of Engram shards, a prerequisite of recipes with them."""

from __future__ import annotations

from pyinfra import host, state
from pyinfra.api import deploy

from pyinfra_vllm import preflight
from pyinfra_vllm.deploys import data, prerequisites
from pyinfra_vllm.engram import plan
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.operations import engram as operations

_DEFAULTS = {"recipe": None, "vllm_gang": "main", "rate": 0, "verify": None}


@deploy("Engram copies", data_defaults=_DEFAULTS)
def engram(recipe: str | None = None) -> None:
    """Make or top up the local shards of ``recipe`` on this host (else ``--data recipe=…``).

    Data: ``rate`` limits the copying, in MB a second (0: no limit); ``verify=full`` reads
    the copies and the snapshot, compares them and repairs what differs.
    """
    if not data.concerns(host):
        return
    found = prerequisites.look(state, host, recipe)
    if host.name not in {node.name for node in found.gang.nodes}:
        return
    try:
        preflight.revisions_of(found.recipe, found.gang, found.states)
        rate = _megabytes(host.data.get("rate"))
        verify = _verify(host.data.get("verify"))
        node = found.gang.node(host.name)
        if host.name not in found.states:
            raise UserError(f"{host.name}: can't be reached")
        wanted = plan(found.recipe, node, found.states[host.name], rate, verify)
    except UserError as error:
        raise Refusal(str(error)) from None
    operations.copied(name="Engram copies: whole", plan=wanted)


def _megabytes(value: object) -> int:
    try:
        return int(float(str(value)) * 1e6)
    except ValueError:
        raise UserError(f"rate={value}: expected MB a second, such as rate=200") from None


def _verify(value: object) -> bool:
    if value not in (None, "full"):
        raise UserError(f"verify={value}: expected verify=full")
    return value == "full"
