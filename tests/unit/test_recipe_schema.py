"""What an editor is told about recipes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm import recipe_schema
from recipe_files import writer
from unit.gangs import check_golden

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "recipes" / recipe_schema.FILE
RECIPES = sorted((ROOT / "recipes").glob("*/recipe.toml"))
TAPLO = Path(sys.executable).parent / "taplo"


def taplo(*paths: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    words = [TAPLO, "lint", "--no-auto-config", *paths]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)


def test_the_schema_file_is_that_of_the_models() -> None:
    check_golden(SCHEMA, recipe_schema.text())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_every_recipe_names_the_schema_in_its_first_line(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"#:schema ../{recipe_schema.FILE}"


def test_taplo_finds_nothing_in_the_shipped_recipes() -> None:
    done = taplo(*RECIPES)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "changes",
    [
        {"shm_sice": '"32gb"'},
        {"required_nodes": '"4"'},
        {"engine": '"sglang"'},
        {"distributed_backend": '"ray"'},
        {"model": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_taplo_shows_a_mistake_in_the_editor(
    tmp_path: Path, changes: dict[str, str | None]
) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / recipe_schema.FILE).write_text(SCHEMA.read_text())
    path = writer(tmp_path)(**changes)
    path.write_text(f"#:schema ../{recipe_schema.FILE}\n{path.read_text()}")
    done = taplo(path, cwd=tmp_path)
    assert done.returncode != 0, done.stderr


def test_every_key_has_its_explanation_in_the_editor() -> None:
    schema = json.loads(SCHEMA.read_text())
    for table in (schema, *schema["definitions"].values()):
        assert all(field.get("description") for field in table["properties"].values())
