"""Two recipes compared, as text for a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyinfra_vllm import catalog, compare
from pyinfra_vllm.catalog import Found

TINY = catalog.find("tiny-cpu-4x")


def changed(**values: Any) -> Found:
    return replace(TINY, recipe=TINY.recipe.model_copy(update=values))


def test_equal_recipes_have_no_differences() -> None:
    assert compare.text(TINY, TINY) == "tiny-cpu-4x -> tiny-cpu-4x\nno differences\n"


def test_flags_variables_and_keys_that_change_are_the_engines() -> None:
    args = [word for word in TINY.recipe.args if word != "--enforce-eager"]
    args[args.index("--max-num-seqs") + 1] = "4"
    env = {**TINY.recipe.env, "OMP_NUM_THREADS": "2", "NEW": ""}
    new = changed(args=(*args, "--seed=1"), env=env, shm_size=None)
    assert compare.text(TINY, new).splitlines()[1:] == [
        "",
        "For the engine:",
        "  - shm_size 512mb",
        "  env.OMP_NUM_THREADS: 1 -> 2",
        "  - --enforce-eager",
        "  --max-num-seqs: 2 -> 4",
        "  + env.NEW",
        "  + --seed 1",
    ]


def test_json_is_compared_key_by_key() -> None:
    old = changed(args=("--speculative-config", '{"method":"x","n":{"a":7}}'))
    new = changed(args=('--speculative_config={"method":"x","n":{"a":5}}',))
    assert "  --speculative-config.n.a: 7 -> 5" in compare.text(old, new).splitlines()
    assert "method" not in compare.text(old, new)


def test_the_same_flag_in_another_spelling_is_no_difference_for_people() -> None:
    old, new = changed(args=("--seed", "1")), changed(args=("--seed=1",))
    assert "args: the same flags in another order or spelling" in compare.text(old, new)


def test_words_for_people_are_kept_apart() -> None:
    said = compare.text(TINY, changed(name="Other"))
    assert "For the engine" not in said
    assert "Only for people:\n  name: Tiny random Llama on CPU, 4 nodes -> Other\n" in said


def test_what_an_image_is_built_from_is_compared() -> None:
    said = compare.text(catalog.find("r36"), catalog.find("r37"))
    commit = "c687594b8a8082e18af9fe2f64eb5f9ee442e251"
    assert f"  image.sources[vllm].commit: todo -> {commit}\n" in said
    assert said.index("For the engine:") < said.index("commit") < said.index("Only for people:")
