"""What is asked of a node before anything is decided. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra_vllm import managed, model, serving
from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.node.query import CopyQuery, Query, SnapshotQuery
from pyinfra_vllm.recipe import Recipe

SHARE_UNIT = "pyinfra-vllm-share"
"""Transient unit that offers an image to the other nodes."""

SHARE_UNIT_FILE = f"/run/systemd/transient/{SHARE_UNIT}.service"


@dataclass(frozen=True)
class Question:
    """The part of a deploy that decides what must be known of a node."""

    gang: str
    recipe: Recipe
    build: str | None
    addresses: tuple[str, ...] = ()
    """Fabric addresses of the gang's nodes, as far as they are known."""


def query_of(question: Question, node: Node) -> Query:
    """Everything that one deploy needs to know of ``node``, in one query."""
    recipe = question.recipe
    composed = recipe.composed_model
    local_files = tuple(local.host for local in composed.local_files) if composed else ()
    snapshots = tuple(
        SnapshotQuery(hub=node.hf_cache, repo=repo, revision=revision)
        for repo, revision in model.repos(recipe)
    )
    others = (address for address in question.addresses if address != node.fabric_address)
    return Query(
        gang=question.gang,
        state_root=paths.STATE_ROOT,
        agent_path=paths.AGENT,
        files=(
            f"{paths.UNIT_ROOT}/{paths.unit(question.gang)}",
            paths.TMPFILES,
            paths.AGENT,
            SHARE_UNIT_FILE,
            paths.members(question.gang),
            paths.secret(question.gang),
            paths.wanted(question.gang),
            paths.paused(question.gang),
        ),
        snapshots=snapshots,
        local_files=local_files,
        copies=tuple(
            _copy(recipe, node, host, snapshots)
            for host in local_files
            if host.endswith(".safetensors")
        ),
        mounts=(
            paths.STATE_ROOT,
            paths.CACHE_ROOT,
            paths.COMPOSED_ROOT,
            node.hf_cache,
            *local_files,
        ),
        image_tags=(recipe.docker_image,),
        composed=(paths.composed_root(question.gang),) if composed else (),
        api_port=serving.api(recipe).port,
        ports=(serving.api(recipe).port, serving.MASTER_PORT) if node.rank == 0 else (),
        fabric_address=node.fabric_address or None,
        peers=tuple(address for address in others if address),
        peer_port=serving.MASTER_PORT,
        environ=(*recipe.env, *managed.ENVIRONMENT),
    )


def _copy(recipe: Recipe, node: Node, host: str, snapshots: tuple[SnapshotQuery, ...]) -> CopyQuery:
    share = model.share(recipe, node.rank)
    first_rows = {layer: tuple(rows) for layer, rows in share.get("first_rows", {}).items()}
    return CopyQuery(
        host=host,
        sources=snapshots,
        rank=share["rank"],
        parallel_size=share["parallel_size"],
        first_rows=tuple(first_rows.items()),
    )


def merged(queries: Sequence[Query]) -> Query:
    """One query that asks all that several ask of the same node; lists are joined."""
    first = queries[0]
    joined: dict[str, object] = {}
    for name in Query.model_fields:
        values = [getattr(query, name) for query in queries]
        if isinstance(values[0], tuple):
            joined[name] = tuple(dict.fromkeys(item for value in values for item in value))
    return first.model_copy(update=joined)


def unasked(wanted: Query, asked: Query) -> list[str]:
    """Fields of ``wanted`` that a state which answers ``asked`` says nothing about."""
    fields = ("files", "snapshots", "local_files", "composed", "image_tags", "ports", "mounts")
    return [name for name in fields if not set(getattr(wanted, name)) <= set(getattr(asked, name))]
