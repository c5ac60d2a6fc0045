"""Releases: what they hold, and when two of them are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.release import release_of
from unit.gangs import GOLDEN, check_golden, content_of, release

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path.parent.name for path in (ROOT / "recipes").glob("*/recipe.toml"))


@pytest.mark.parametrize("name", RECIPES)
def test_rendered_files_are_the_golden_ones(name: str) -> None:
    made = release(name)
    for node in made.content.gang.nodes[:2]:
        for file, text in made.files(node).items():
            if file == "seccomp.json":
                continue
            check_golden(GOLDEN / name / f"rank{node.rank}" / file, text)


def test_the_digest_names_the_directory_and_stands_in_the_files() -> None:
    made = release()
    assert made.directory == f"/var/lib/pyinfra-vllm/main/releases/{made.digest}"
    for node in made.content.gang.nodes:
        launch = json.loads(made.files(node)["launch.json"])
        assert launch["release"] == made.digest
        assert launch["labels"]["pyinfra-vllm.release"] == made.digest
        assert made.manifest(node)["directory"] == made.composed_directory  # type: ignore[index]


def test_words_for_people_change_no_digest() -> None:
    content = content_of("tiny-cpu-4x")
    renamed = content.recipe.model_copy(update={"name": "other", "parent_model": "other/model"})
    assert release_of(replace(content, recipe=renamed)).digest == release_of(content).digest


@pytest.mark.parametrize("change", ["args", "env", "address", "revision", "build", "gang"])
def test_whatever_shapes_the_engine_changes_the_digest(change: str) -> None:
    content = content_of("tiny-cpu-4x")
    nodes = content.gang.nodes
    changed = {
        "args": lambda: replace(
            content,
            recipe=content.recipe.model_copy(update={"args": (*content.recipe.args, "--x")}),
        ),
        "env": lambda: replace(
            content, recipe=content.recipe.model_copy(update={"env": {"A": "1"}})
        ),
        "address": lambda: replace(
            content,
            gang=Gang("main", (*nodes[:3], replace(nodes[3], fabric_address="10.9.9.9"))),
        ),
        "revision": lambda: replace(content, revisions=dict.fromkeys(content.revisions, "f" * 40)),
        "build": lambda: replace(content, build="c" * 64),
        "gang": lambda: replace(content, gang=Gang("other", nodes)),
    }[change]()
    assert release_of(changed).digest != release_of(content).digest


def test_the_digest_is_the_same_in_another_process_with_another_hash_seed() -> None:
    code = "from unit.gangs import release; print(release().digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "tests"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {release().digest}


def test_the_composed_model_takes_local_files_from_the_node() -> None:
    made = release()
    manifest = made.manifest(made.content.gang.head)
    assert manifest is not None
    assert manifest["local_files"] == [
        {
            "host": "/var/tmp/engram-local/llama-tp4/model-00002-of-00002.safetensors",
            "name": "model-00002-of-00002.safetensors",
        }
    ]
