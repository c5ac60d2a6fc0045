"""Which local copies of Engram shards a node needs, and from where. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pyinfra_vllm import model
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.recipe import Recipe

PLAN_SCHEMA = 1


def plan(recipe: Recipe, node: Node, state: NodeState, rate: int, verify: bool) -> dict[str, Any]:
    """What the agent is to make on a node; its snapshots are whole.

    ``rate`` is in bytes a second, 0 for no limit. UserError when the recipe has no local
    files, or one that no source has.
    """
    composed = recipe.composed_model
    shards = [
        local.host
        for local in (composed.local_files if composed else ())
        if local.host.endswith(".safetensors")
    ]
    if not shards:
        raise UserError("the recipe has no local shards (composed_model.local_files)")
    found = [_shard(recipe, state, host) for host in shards]
    repo, revision = found[0][0], found[0][1]
    return {
        "schema": PLAN_SCHEMA,
        "repo": repo,
        "revision": revision,
        "engram": model.share(recipe, node.rank),
        "rate": rate,
        "verify": verify,
        "files": [
            {"host": host, "shard": path} for host, (_, _, path) in zip(shards, found, strict=True)
        ],
    }


def _shard(recipe: Recipe, state: NodeState, host: str) -> tuple[str, str, str]:
    """Repository, revision and path of the shard that a local file replaces."""
    name = PurePosixPath(host).name
    for repo, pin in reversed(model.repos(recipe)):
        snapshot = state.snapshot(repo, pin)
        if snapshot and snapshot.path and snapshot.revision and name in snapshot.entries:
            return repo, snapshot.revision, f"{snapshot.path}/{name}"
    repos = ", ".join(repo for repo, _ in model.repos(recipe))
    raise UserError(f"{host}: no source of the recipe ({repos}) has a file {name} to copy from")
