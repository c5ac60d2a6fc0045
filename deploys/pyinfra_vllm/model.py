"""The composed model of one node: which links the mounted directory is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from pyinfra_vllm import flags
from pyinfra_vllm.agent import whole
from pyinfra_vllm.node.models import Snapshot
from pyinfra_vllm.recipe import Recipe
from pyinfra_vllm.recipe_tables import LocalFile, Source

MANIFEST_SCHEMA = 1


def repo_folder(repo: str) -> str:
    """Folder of a model in a Hugging Face cache: ``models--ORG--NAME``."""
    return "models--" + repo.replace("/", "--")


def repos(recipe: Recipe) -> tuple[tuple[str, str | None], ...]:
    """Repositories that must be in the cache, each with its pinned revision or None."""
    if recipe.composed_model is None:
        return ((recipe.model, None),)
    return tuple((source.repo, source.revision) for source in recipe.composed_model.sources)


def has_weights(recipe: Recipe, snapshots: Iterable[Snapshot]) -> bool:
    """Whether the sources have a model's weights; always for an engine that makes them up."""
    if flags.value_of(recipe.args, "--load-format") == "dummy":
        return True
    return whole.has_weights(name for one in snapshots for name in one.entries)


def manifest(
    recipe: Recipe,
    rank: int,
    hub: str,
    directory: str,
    revisions: Mapping[str, str],
) -> dict[str, Any]:
    """Link plan of one node, expanded by the agent before every start.

    ``hub`` is the node's Hugging Face cache; ``revisions`` has the commit of every
    repository (the pin, or what ``refs/main`` said). ``rank`` decides which rows of
    Engram tables its local files must hold. The recipe has a composed model.
    """
    composed = recipe.composed_model
    assert composed is not None
    plan: dict[str, Any] = {
        "schema": MANIFEST_SCHEMA,
        "directory": directory,
        "sources": [_source(source, hub, revisions[source.repo]) for source in composed.sources],
        "local_files": [_local_file(local) for local in composed.local_files],
    }
    if composed.local_files:
        plan["engram"] = share(recipe, rank)
    return plan


def share(recipe: Recipe, rank: int) -> dict[str, Any]:
    """Which rows of Engram tables a rank reads, as the agent takes it.

    Ranks count tensor parallel positions first, so each group of a pipeline has all rows.
    """
    size = recipe.tensor_parallel_size
    found: dict[str, Any] = {"rank": rank % size, "parallel_size": size}
    if recipe.composed_model and recipe.composed_model.engram_first_rows:
        rows = recipe.composed_model.engram_first_rows
        found["first_rows"] = {layer: list(first) for layer, first in rows.items()}
    return found


def _source(source: Source, hub: str, revision: str) -> dict[str, Any]:
    snapshot = str(PurePosixPath(hub, repo_folder(source.repo), "snapshots") / revision)
    found: dict[str, Any] = {"repo": source.repo, "revision": revision, "snapshot": snapshot}
    return {**found, "override": True} if source.override else found


def _local_file(local: LocalFile) -> dict[str, Any]:
    found: dict[str, Any] = {"host": local.host, "name": PurePosixPath(local.host).name}
    return {**found, "copy": True} if local.copied else found
