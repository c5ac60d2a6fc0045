"""The deploy that fetches a recipe's model to the Hugging Face cache of its nodes."""

from __future__ import annotations

from pyinfra import host, state
from pyinfra.api import deploy

from pyinfra_vllm.deploys import data, prerequisites
from pyinfra_vllm.operations import model_fetch
from pyinfra_vllm.questions import Question

_DEFAULTS = {"recipe": None, "vllm_gang": "main", "endpoint": None}


@deploy("Model", data_defaults=_DEFAULTS)
def model(recipe: str | None = None) -> None:
    """Fetch what the cache of this host lacks of ``recipe``'s model (else ``--data recipe=…``).

    The first node in rank order that lacks it fetches; the others look again after it, as
    nodes often share a cache. Data: ``endpoint``, the address of another hub.
    """
    if not data.concerns(host):
        return
    found = prerequisites.look(state, host, recipe)
    if host.name not in found.states:
        return
    gang = found.gang
    question = Question(gang.name, found.recipe, None, gang.addresses)
    node, endpoint = gang.node(host.name), host.data.get("endpoint")
    lacking = [n for n in gang.nodes if n.name in found.states]
    lacking = [n for n in lacking if model_fetch.lacks(question, found.states[n.name])]
    if lacking and node == lacking[0]:
        model_fetch.fetched(
            name="Model: fetched once", question=question, node=node, endpoint=endpoint
        )
    model_fetch.fetched(
        name="Model: in the cache of every node", question=question, node=node, endpoint=endpoint
    )
