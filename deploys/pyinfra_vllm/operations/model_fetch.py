"""Operation: the snapshots of a recipe in the Hugging Face cache of a node.

``hf download`` goes on where it was cut, and runs in a transient unit that outlives a lost
connection.
"""

from __future__ import annotations

import shlex

from pyinfra import host, state
from pyinfra.api import Host, State, operation

from pyinfra_vllm import model
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.facts import survey
from pyinfra_vllm.node.models import Snapshot
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations import transient
from pyinfra_vllm.operations.common import Commands, called, change, explained, show
from pyinfra_vllm.questions import Question, query_of

UNIT = "pyinfra-vllm-fetch"


@operation()
@explained
def fetched(question: Question, node: Node, endpoint: str | None = None) -> Commands:
    """Every repository of the recipe is whole in the cache of this node.

    Looks again when it runs: nodes that share a cache fetch once.

    + question: recipe and gang
    + node: the node of this host
    + endpoint: address of another hub than huggingface.co
    """
    lacking = lacks(question, survey.node_state(state, host, lambda _: query_of(question, node)))
    if not lacking:
        return
    for repo, revision in lacking:
        show(f"Will fetch {repo} ({revision or 'main'}) to {node.hf_cache}")
    yield from change(called(_fetch, question, node, endpoint))


def lacks(question: Question, found: NodeState) -> list[tuple[str, str | None]]:
    """Repositories, each with its pin, that aren't whole in the cache.

    All of them where none has weights: of a download that was cut soon, there may be no trace.
    """
    repos = model.repos(question.recipe)
    there = {repo: found.snapshot(repo, pin) for repo, pin in repos}
    if not model.has_weights(question.recipe, filter(None, there.values())):
        return list(repos)
    return [(repo, pin) for repo, pin in repos if not _is_fetched(there[repo])]


def _is_fetched(snapshot: Snapshot | None) -> bool:
    return snapshot is not None and snapshot.complete and not snapshot.unfinished


def _fetch(state: State, host: Host, question: Question, node: Node, endpoint: str | None) -> bool:
    found = survey.node_state(state, host, lambda _: query_of(question, node))
    for repo, revision in lacks(question, found):
        argv = command(repo, revision, node.hf_cache, question.recipe.docker_image, endpoint)
        if not transient.work(host, UNIT, argv):
            return False
    return True


def command(
    repo: str, revision: str | None, hub: str, image: str, endpoint: str | None
) -> list[str]:
    """What fetches one repository: the node's own ``hf``, or that of the recipe's image."""
    download = ["download", repo, *(("--revision", revision) if revision else ())]
    download += ["--cache-dir", hub]
    environ = {"HF_HUB_OFFLINE": "0", **({"HF_ENDPOINT": endpoint} if endpoint else {})}
    settings = [f"{name}={value}" for name, value in environ.items()]
    inside = ["docker", "run", "--rm", "--network", "host", "--entrypoint", "hf"]
    for setting in settings:
        inside += ["--env", setting]
    inside += ["--mount", f"type=bind,source={hub},target={hub}", image]
    script = (
        f"if command -v hf >/dev/null; then exec env {shlex.join([*settings, 'hf', *download])}; "
        f"elif docker image inspect {shlex.quote(image)} >/dev/null 2>&1; "
        f"then mkdir -p {shlex.quote(hub)} && exec {shlex.join([*inside, *download])}; "
        f"else echo 'there is neither hf nor image {image} here; install hf: "
        "pipx install huggingface_hub, or deploy the image first' >&2; exit 1; fi"
    )
    return ["bash", "-c", script]
