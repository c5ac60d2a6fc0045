"""The composed model of one node: which links the mounted directory is made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pyinfra_vllm.recipe import ComposedModel, Recipe

MANIFEST_SCHEMA = 1


def repo_folder(repo: str) -> str:
    """Folder of a model in a Hugging Face cache: ``models--ORG--NAME``."""
    return "models--" + repo.replace("/", "--")


def repos(recipe: Recipe) -> tuple[tuple[str, str | None], ...]:
    """Repositories that must be in the cache, each with its pinned revision or None."""
    if recipe.composed_model is None:
        return ((recipe.model, None),)
    return tuple((source.repo, source.revision) for source in recipe.composed_model.sources)


def manifest(
    composed: ComposedModel,
    hub: str,
    directory: str,
    revisions: Mapping[str, str],
) -> dict[str, Any]:
    """Link plan of one node, expanded by the agent before every start.

    ``hub`` is the node's Hugging Face cache; ``revisions`` has the commit of every
    repository (the pin, or what ``refs/main`` said).
    """
    return {
        "schema": MANIFEST_SCHEMA,
        "directory": directory,
        "sources": [
            {
                "repo": source.repo,
                "revision": revisions[source.repo],
                "snapshot": str(
                    PurePosixPath(hub, repo_folder(source.repo), "snapshots")
                    / revisions[source.repo]
                ),
            }
            for source in composed.sources
        ],
        "local_files": [
            {"host": local.host, "name": PurePosixPath(local.host).name}
            for local in composed.local_files
        ],
    }
