"""What must hold on the nodes before anything is changed. Pure: states in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator

from pyinfra_vllm import model, serving
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import Build
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.recipe import Recipe


def revisions_of(recipe: Recipe, gang: Gang, states: States) -> dict[str, str]:
    """Commit of every repository of the model, the same on all nodes.

    UserError lists, node by node, what is missing or differs.
    """
    problems = [
        line for node in gang.nodes for line in _missing_models(recipe, node, states[node.name])
    ]
    if problems:
        raise UserError("\n".join(problems))
    return {repo: _revision(repo, pin, gang, states) for repo, pin in model.repos(recipe)}


def _missing_models(recipe: Recipe, node: Node, state: NodeState) -> Iterator[str]:
    for repo, pin in model.repos(recipe):
        snapshot = state.snapshot(repo, pin)
        fetch = f"hf download {repo} --cache-dir {node.hf_cache}" + (
            f" --revision {pin}" if pin else ""
        )
        if snapshot is None or not snapshot.hub_exists:
            yield (
                f"{node.name}: {node.hf_cache} (vllm_hf_cache) is not there; mount it, "
                "or correct the inventory"
            )
        elif not snapshot.exists or snapshot.revision is None:
            yield f"{node.name}: {repo} is not in {node.hf_cache}; fetch it: {fetch}"
        elif not snapshot.complete:
            first = snapshot.missing[0] if snapshot.missing else "all files"
            yield (
                f"{node.name}: {snapshot.path} is incomplete, {len(snapshot.missing)} missing "
                f"({first}); fetch the rest: {fetch}"
            )


def _revision(repo: str, pin: str | None, gang: Gang, states: States) -> str:
    found = {}
    for node in gang.nodes:
        snapshot = states[node.name].snapshot(repo, pin)
        found[node.name] = str(snapshot.revision) if snapshot else ""
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    lines = [f"{repo}: the nodes have different revisions; fetch the same one, or pin it:"]
    raise UserError("\n".join(lines + [f"  {name}: {commit}" for name, commit in found.items()]))


def problems(recipe: Recipe, gang: Gang, build: Build | None, states: States) -> list[str]:
    """Sentences that say what stops the deploy: node, fact, remedy. Empty: nothing does."""
    found = [
        line for node in gang.nodes for line in _on_node(recipe, gang, node, states[node.name])
    ]
    return found + list(_about_image(recipe, gang, build, states))


def _on_node(recipe: Recipe, gang: Gang, node: Node, state: NodeState) -> Iterator[str]:
    system = state.system.required
    if system.uid != 0:
        yield (
            f"{node.name}: commands run as uid {system.uid}, root is needed; "
            "set _sudo in the inventory"
        )
        return
    if not state.docker.ok:
        yield (
            f"{node.name}: docker doesn't answer ({state.docker.reason}); install it "
            "(apt-get install docker.io, on DGX OS docker-ce) and start it: "
            "systemctl enable --now docker"
        )
        return
    for name, why in state.failures().items():
        yield f"{node.name}: {name} can't be read: {why}"
    if state.failures():
        return
    yield from _local_files(recipe, node, state)
    if node.fabric_address and not state.has_address(node.fabric_address):
        yield (
            f"{node.name}: {node.fabric_address} (vllm_fabric_address) is on none of its "
            "interfaces; see: ip -brief address"
        )
    if node == gang.head:
        yield from _taken_port(recipe, gang, node, state)


def _local_files(recipe: Recipe, node: Node, state: NodeState) -> Iterator[str]:
    for local in recipe.composed_model.local_files if recipe.composed_model else ():
        found = state.local_file(local.host)
        if found is None:
            yield (
                f"{node.name}: {local.host} is missing (composed_model.local_files); copy it there"
            )
        elif found.type != "file":
            yield (
                f"{node.name}: {local.host} is a {found.type}, "
                "a plain file is needed for a hard link"
            )
        elif found.device != state.disks.required["/tmp"].device:
            yield (
                f"{node.name}: {local.host} and {paths.COMPOSED_ROOT} are on different file "
                "systems, and a hard link can't cross them; put /tmp on the same one "
                "(is it a tmpfs? systemctl mask tmp.mount)"
            )


def _taken_port(recipe: Recipe, gang: Gang, node: Node, state: NodeState) -> Iterator[str]:
    port = serving.api(recipe).port
    ours = state.container(paths.container(gang.name))
    for listener in state.listeners.required:
        container = listener.container
        if ours and ours.ours and container == ours.name:
            continue
        who = f"container {container}" if container else f"pid {listener.pid}"
        remedy = f"docker stop {container}" if container else f"kill {listener.pid}"
        yield (
            f"{node.name}: port {port} is taken by {who} ({' '.join(listener.command)[:120]}); "
            f"stop it ({remedy}), or give the recipe another --port"
        )


def _about_image(recipe: Recipe, gang: Gang, build: Build | None, states: States) -> Iterator[str]:
    tag = recipe.docker_image
    if build is None:
        missing = [node.name for node in gang.nodes if not states[node.name].image_tagged(tag)]
        if missing:
            yield (
                f"image {tag} is not on {', '.join(missing)}, "
                "and the recipe has no docker_image_dir to build it from"
            )
        return
    if build.missing and not any(states[node.name].image_of(build.digest) for node in gang.nodes):
        lines = "".join(f"\n  {field}" for field in build.missing)
        yield f"image {tag} can't be built, its profile has fields that are still todo:{lines}"
