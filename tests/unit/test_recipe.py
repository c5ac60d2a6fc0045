from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.recipe import Recipe, load
from recipe_files import WHERE, Write, message, writer


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    return writer(tmp_path)


def test_the_least_recipe_has_the_documented_defaults(write: Write) -> None:
    recipe = load(write())
    assert recipe.entrypoint == ("vllm", "serve")
    assert recipe.distributed_backend == "mp"
    assert recipe.pipeline_parallel_size == 1
    assert recipe.start_timeout == 3600
    assert (recipe.args, recipe.env, recipe.composed_model, recipe.shm_size) == ((), {}, None, None)


def test_a_recipe_cannot_be_changed(write: Write) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(write()).name = "other"  # type: ignore[misc]


WRONG_KEYS: dict[str, tuple[dict[str, str | None], str]] = {
    "unknown_near": (
        {"shm_sise": '"32gb"'},
        "shm_sise: unknown key; did you mean shm_size?",
    ),
    "dashes_for_underscores": (
        {"start-timeout": "60"},
        "start-timeout: unknown key; did you mean start_timeout?",
    ),
    "unknown_far": (
        {"zzz": "1"},
        "zzz: unknown key; known here: args, build_profile, composed_model, distributed_backend, "
        "docker_image, docker_image_dir, engine, entrypoint, env, model, name, parent_model, "
        "pipeline_parallel_size, reference_points, required_nodes, secrets, shm_size, "
        "start_timeout, tensor_parallel_size",
    ),
    "missing": ({"model": None}, "model: missing: The checkpoint, as a Hugging Face repository."),
    "number_for_text": (
        {"name": "4"},
        "name: expected text, got the number 4; write it in quotes",
    ),
    "text_for_number": (
        {"required_nodes": '"2"'},
        'required_nodes: expected a whole number, got "2"',
    ),
    "fraction": (
        {"required_nodes": "2.5"},
        "required_nodes: expected a whole number, got the number 2.5",
    ),
    "true_for_number": (
        {"required_nodes": "true"},
        "required_nodes: expected a whole number, got true",
    ),
    "date_for_text": ({"name": "2026-01-01"}, "name: expected text, got a date"),
    "zero_nodes": (
        {"required_nodes": "0"},
        "required_nodes: expected a whole number of at least 1, got the number 0",
    ),
    "negative_timeout": (
        {"start_timeout": "-1"},
        "start_timeout: expected a whole number of at least 1, got the number -1",
    ),
    "text_for_list": ({"args": '"--x"'}, 'args: expected a list, got "--x"; write ["--x"]'),
    "number_in_list": (
        {"args": '["--max-num-seqs", 4]'},
        "args[1]: expected text, got the number 4; write it in quotes",
    ),
    "text_for_table": ({"env": '"A=1"'}, 'env: expected a table, got "A=1"'),
    "other_engine": (
        {"engine": '"sglang"'},
        'engine: expected "vllm", the only engine, got "sglang"',
    ),
    "ray": (
        {"distributed_backend": '"ray"'},
        'distributed_backend: expected "mp", got "ray": Ray runs a cluster of its own, whose '
        "workers survive the gang that started them",
    ),
    "other_backend": (
        {"distributed_backend": '"uni"'},
        'distributed_backend: expected "mp", got "uni"',
    ),
    "blank_name": ({"name": '" "'}, 'name: expected one line of text, got " "'),
    "image_with_space": (
        {"docker_image": '"Image:tag"'},
        'docker_image: expected an image such as name:tag, in lower case, got "Image:tag"',
    ),
    "image_dir_elsewhere": (
        {"docker_image_dir": '"../x"'},
        'docker_image_dir: expected a plain name without slashes, got "../x"',
    ),
    "model_path": (
        {"model": '"/models/x"'},
        'model: expected a Hugging Face repository such as org/name, got "/models/x"',
    ),
    "memory": (
        {"shm_size": '"lots"'},
        'shm_size: expected an amount of memory such as 32gb, got "lots"',
    ),
    "no_entrypoint": (
        {"entrypoint": "[]"},
        'entrypoint: expected at least one word, such as ["vllm", "serve"]',
    ),
    "api_server": (
        {"entrypoint": '["python3", "-m", "vllm.entrypoints.openai.api_server"]'},
        "entrypoint: vllm.entrypoints.openai.api_server ignores --headless, so no rank but 0 "
        'works; write ["vllm", "serve"]',
    ),
    "flag_in_entrypoint": (
        {"entrypoint": '["vllm", "serve", "--headless"]'},
        "entrypoint[2]: --headless is set by the launcher: "
        "the launcher gives it to every rank but 0; leave it out",
    ),
    "profile_without_folder": (
        {"build_profile": '"x"'},
        "build_profile: a profile needs docker_image_dir, the folder of templates/images "
        "that has it",
    ),
    "sizes_and_nodes": (
        {"required_nodes": "4"},
        "required_nodes: 4 nodes have 4 GPUs, but tensor_parallel_size 2 x "
        "pipeline_parallel_size 1 takes 2",
    ),
    "null_character": (
        {"args": r'["--x", "a\u0000b"]'},
        "args[1]: holds a null character, which no process can be given",
    ),
}


@pytest.mark.parametrize("case", WRONG_KEYS)
def test_wrong_key_is_one_line_with_file_key_and_remedy(case: str, write: Write) -> None:
    changes, said = WRONG_KEYS[case]
    assert message(write(**changes)) == f"{WHERE}: {said}"


def test_every_key_is_documented() -> None:
    schema = Recipe.model_json_schema()
    for table in (schema, *schema["$defs"].values()):
        for key, field in table["properties"].items():
            assert field.get("description", "").endswith("."), key
