"""Gangs and releases that several tests start from."""

from __future__ import annotations

import os
from pathlib import Path

from pyinfra_vllm import catalog
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.release import Content, Release, release_of

REVISION = "0123456789abcdef0123456789abcdef01234567"
BUILD = "b" * 64
GOLDEN = Path(__file__).parent / "golden"


def spark(rank: int) -> Node:
    return Node(
        name=f"spark-{rank}",
        rank=rank,
        fabric_address=f"192.168.100.{10 + rank}",
        interfaces=("enp1s0f0np0", "enP2p1s0f0np0"),
        hcas=("rocep1s0f0", "roceP2p1s0f0"),
        hf_cache="/mnt/nas/huggingface/hub",
        gpus=True,
    )


def sparks(size: int) -> Gang:
    return Gang("main", tuple(spark(rank) for rank in range(size)))


def content_of(recipe_name: str, *args: str) -> Content:
    """The content of a recipe of the project, with ``args`` after its own."""
    found = catalog.find(recipe_name)
    recipe = found.recipe.model_copy(update={"args": (*found.recipe.args, *args)})
    sources = recipe.composed_model.sources if recipe.composed_model else ()
    repos = [source.repo for source in sources] or [recipe.model]
    return Content(
        found.name,
        recipe,
        sparks(recipe.required_nodes),
        BUILD,
        dict.fromkeys(repos, REVISION),
    )


def release(recipe_name: str = "tiny-cpu-4x") -> Release:
    return release_of(content_of(recipe_name))


def check_golden(path: Path, text: str) -> None:
    """Compare with a real file; ``UPDATE_GOLDEN=1`` writes it, for review in a diff."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing; UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8")
