from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli

from pyinfra_vllm import cluster, managed, validation
from pyinfra_vllm.catalog import find
from pyinfra_vllm.recipe import Recipe, load

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*/recipe.toml"))
SEED = Path(__file__).parent / "data" / "seed.toml"
R37 = ROOT / "recipes" / "dsv41-flash-jovian-r37-4x" / "recipe.toml"


def _table(path: Path) -> dict[str, Any]:
    return tomli.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_shipped_recipe_loads_and_is_found_by_its_name(path: Path) -> None:
    found = find(path.parent.name)
    assert found.path.samefile(path)
    assert found.recipe == load(path)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_the_number_of_nodes_is_the_end_of_the_name(path: Path) -> None:
    assert path.parent.name.endswith(f"-{load(path).required_nodes}x")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_image_folder_of_a_shipped_recipe_is_there(path: Path) -> None:
    recipe = load(path)
    assert recipe.docker_image_dir is not None
    assert (ROOT / "templates" / "images" / recipe.docker_image_dir).is_dir()


def test_there_are_the_three_first_recipes() -> None:
    names = {path.parent.name for path in RECIPES}
    assert {"dsv41-flash-jovian-r37-4x", "tiny-cpu-4x", "tiny-cpu-1x"} <= names


def test_r37_has_every_value_of_the_file_it_began_with() -> None:
    assert _table(R37) == _table(SEED)
    assert list(_table(R37)["env"]) == list(_table(SEED)["env"])


def test_the_file_it_began_with_loads_unmodified() -> None:
    assert load(SEED) == load(R37)


def test_json_of_r37_reaches_the_engine_without_shell_quotes() -> None:
    args = load(R37).args
    assert args[args.index("--limit-mm-per-prompt") + 1] == '{"image":2}'
    assert not [word for word in args if word.startswith("'")]


def test_both_tiny_recipes_serve_the_same_but_for_their_size() -> None:
    four, one = (
        load(ROOT / "recipes/tiny-cpu-4x/recipe.toml"),
        load(ROOT / "recipes/tiny-cpu-1x/recipe.toml"),
    )
    size = {"name", "required_nodes", "tensor_parallel_size"}
    assert four.model_dump(exclude=size) == one.model_dump(exclude=size)


def _keys(model: type[Any], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{path}{field.alias or name}"
        for inner in validation.models_in(field.annotation):
            yield from _keys(inner, f"{path}{name}.")


def _first_cells(path: Path) -> set[str]:
    rows = re.findall(r"^\| (`[^|]*) \|", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {cell.strip("[]") for row in rows for cell in re.findall(r"`([^`]*)`", row)}


def test_readme_explains_every_key() -> None:
    cells = _first_cells(ROOT / "recipes" / "README.md")
    assert set(_keys(Recipe)) <= cells
    assert {*managed.FLAGS, *managed.ENVIRONMENT, *managed.REFUSED_ENVIRONMENT} <= cells
    assert {*managed.REFUSED_FLAGS, *managed.SECRET_FLAGS} - {"--"} <= cells


def test_readme_of_the_inventory_explains_every_key() -> None:
    assert _first_cells(ROOT / "inventory" / "README.md") == set(cluster.KEYS)


def test_readme_lists_every_recipe() -> None:
    text = (ROOT / "recipes" / "README.md").read_text(encoding="utf-8")
    for path in RECIPES:
        assert f"({path.parent.name}/recipe.toml)" in text
