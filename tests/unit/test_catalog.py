from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyinfra_vllm import resources
from pyinfra_vllm.catalog import find
from pyinfra_vllm.errors import UserError

Shelf = Callable[..., None]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Folders of recipes in the working directory, which are all there are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "nowhere" / "else" / "at_all")

    def shelf(**recipes: int | str) -> None:
        (tmp_path / "recipes").mkdir(exist_ok=True)
        for name, content in recipes.items():
            folder = tmp_path / "recipes" / name.replace("_", "-")
            folder.mkdir()
            text = content if isinstance(content, str) else _recipe(content)
            (folder / "recipe.toml").write_text(text)

    return shelf


def _recipe(nodes: int) -> str:
    return (
        'engine = "vllm"\nname = "n"\ndocker_image = "i"\nmodel = "m"\n'
        f"required_nodes = {nodes}\ntensor_parallel_size = {nodes}\n"
    )


def message(value: object, nodes: int | None = None) -> str:
    with pytest.raises(UserError) as caught:
        find(value, nodes)
    return str(caught.value)


def test_part_between_dashes_finds_the_recipe(shelf: Shelf) -> None:
    shelf(big_jovian_r37_4x=4, small_2x=2)
    for value in ("r37", "jovian", "jovian-r37", "big-jovian-r37-4x"):
        found = find(value)
        assert found.name == "big-jovian-r37-4x"
        assert found.path.samefile("recipes/big-jovian-r37-4x/recipe.toml")
        assert found.recipe.required_nodes == 4


def test_less_than_a_part_finds_nothing(shelf: Shelf) -> None:
    shelf(big_jovian_r37_4x=4)
    assert message("r3") == (
        "recipe 'r3': no recipe has this name or this part in its name; "
        "did you mean big-jovian-r37-4x?"
    )


def test_of_several_the_one_that_fits_the_inventory_is_meant(shelf: Shelf) -> None:
    shelf(tiny_4x=4, tiny_1x=1)
    assert find("tiny", 4).name == "tiny-4x"
    assert find("tiny", 1).name == "tiny-1x"


def test_a_full_name_wins_over_names_that_have_it_as_a_part(shelf: Shelf) -> None:
    shelf(tiny=2, tiny_4x=4)
    assert find("tiny", 4).name == "tiny"


def test_the_only_one_is_found_even_if_the_inventory_is_smaller(shelf: Shelf) -> None:
    shelf(tiny_4x=4)
    assert find("tiny", 1).name == "tiny-4x"


def test_ambiguous_lists_all_candidates(shelf: Shelf) -> None:
    shelf(a_r37_4x=4, b_r37_4x=4, c_r37_2x=2, d_r36_4x=4)
    assert message("r37") == (
        "recipe 'r37': 3 recipes have this in their name: a-r37-4x (required_nodes 4), "
        "b-r37-4x (required_nodes 4), c-r37-2x (required_nodes 2); write one of these names"
    )
    assert message("r37", 4) == (
        "recipe 'r37': 3 recipes have this in their name and 2 of them for 4 nodes: "
        "a-r37-4x (required_nodes 4), b-r37-4x (required_nodes 4), "
        "c-r37-2x (required_nodes 2); write one of these names"
    )
    assert "and none of them for 3 nodes" in message("r37", 3)


def test_unknown_names_the_nearest(shelf: Shelf) -> None:
    shelf(big_r37_4x=4, small_2x=2)
    said = "no recipe has this name or this part in its name;"
    assert message("R37") == f"recipe 'R37': {said} did you mean big-r37-4x?"
    assert message("smal") == f"recipe 'smal': {said} did you mean small-2x?"
    assert message("zzzz") == f"recipe 'zzzz': {said} there are: big-r37-4x, small-2x"


def test_no_recipes_at_all_says_where_they_belong(shelf: Shelf) -> None:
    shelf()
    assert message("r37") == (
        "recipe 'r37': there are no recipes; a recipe is a file recipes/NAME/recipe.toml"
    )


@pytest.mark.parametrize("value", ["recipes/x-4x", "recipes/x-4x/", "./recipes/x-4x/recipe.toml"])
def test_path_to_a_file_or_its_folder_is_taken(value: str, shelf: Shelf) -> None:
    shelf(x_4x=4)
    assert find(value).name == "x-4x"


def test_path_outside_the_shelf_is_taken(shelf: Shelf, tmp_path: Path) -> None:
    shelf()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text(_recipe(1))
    (tmp_path / "single.toml").write_text(_recipe(1))
    assert find(str(tmp_path / "mine")).name == "mine"
    assert find("mine").name == "mine"
    assert find("single.toml").name == "single"


def test_path_to_nothing_says_which_file_is_missing(shelf: Shelf) -> None:
    shelf()
    assert message("./no/such") == "recipe './no/such': there is no file no/such"
    assert message("recipes/") == "recipe 'recipes/': there is no file recipes/recipe.toml"


@pytest.mark.parametrize(
    ("value", "got", "name"),
    [
        (37, "the number 37", "big-r37-4x"),
        (1.1, "the number 1.1", "big-r37-4x"),
        (7, "the number 7", "big-r37-4x"),
        (True, "true", "big-r37-4x"),
        (["r37"], "a list", "big-r37-4x"),
    ],
)
def test_what_pyinfra_turned_into_something_else_is_refused_with_a_hint(
    value: object, got: str, name: str, shelf: Shelf
) -> None:
    shelf(big_r37_4x=4)
    assert message(value) == (
        f"recipe: expected text, got {got}: pyinfra turns --data values that look like numbers, "
        "true, false or JSON into these; write the recipe's full name or a path, such as "
        f"--data recipe={name}"
    )


@pytest.mark.parametrize("value", [None, "", " "])
def test_no_value_says_how_to_give_one(value: object, shelf: Shelf) -> None:
    shelf(x_4x=4)
    assert message(value) == "no recipe is given; add for example --data recipe=x-4x"


def test_a_broken_recipe_does_not_stop_another(shelf: Shelf) -> None:
    shelf(good_4x=4, broken_4x="engine = ", wrong_4x='engine = "x"')
    assert find("good").name == "good-4x"
    assert find("good-4x").name == "good-4x"
    assert message("broken") == "recipes/broken-4x/recipe.toml:1:10: not TOML: Invalid value"


def test_a_candidate_that_fits_is_found_beside_one_with_wrong_keys(shelf: Shelf) -> None:
    shelf(x_4x=4, x_1x='required_nodes = 1\nengine = "x"')
    assert find("x", 4).name == "x-4x"


def test_recipe_in_the_working_directory_wins_over_the_package(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf(x_4x=4)
    packaged = tmp_path / "package" / "share" / "recipes"
    for name, nodes in (("x-4x", 2), ("y-2x", 2)):
        (packaged / name).mkdir(parents=True)
        (packaged / name / "recipe.toml").write_text(_recipe(nodes))
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "package")
    assert find("x").recipe.required_nodes == 4
    assert find("y").recipe.required_nodes == 2
