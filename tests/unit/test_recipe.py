from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_vllm import words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.recipe import Recipe, load

WHERE = "recipes/x/recipe.toml"

TOP = {
    "engine": '"vllm"',
    "name": '"A name"',
    "docker_image": '"image:tag"',
    "model": '"org/name"',
    "required_nodes": "2",
    "tensor_parallel_size": "2",
}
COMPOSED = """
[composed_model]
mount = "/model"
[[composed_model.sources]]
repo = "org/name"
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A recipe with some keys changed (None: left out) and some text at its end."""
    monkeypatch.chdir(tmp_path)

    def write(tail: str = "", **changes: str | None) -> Path:
        keys = {**TOP, **changes}
        path = tmp_path / WHERE
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
        path.write_text("\n".join([*lines, tail]), encoding="utf-8")
        return path

    return write


def message(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(path)
    return str(caught.value)


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


WRONG_KEYS = {
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
        "pipeline_parallel_size, required_nodes, shm_size, start_timeout, tensor_parallel_size",
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


LAUNCHER = "is set by the launcher:"
WRONG_ARGS = {
    "nnodes": (
        '"--nnodes", "2"',
        f"args[0]: --nnodes {LAUNCHER} the number of nodes is the key required_nodes",
    ),
    "nnodes_short": (
        '"-n", "2"',
        f"args[0]: -n (that is --nnodes) {LAUNCHER} the number of nodes is the key required_nodes",
    ),
    "node_rank": (
        '"--x", "y", "--node_rank=0"',
        f"args[2]: --node_rank (that is --node-rank) {LAUNCHER} "
        "a node's rank is vllm_rank in the inventory",
    ),
    "master_addr": (
        '"--master-addr=10.0.0.1"',
        f"args[0]: --master-addr {LAUNCHER} "
        "it is the vllm_fabric_address of rank 0 in the inventory",
    ),
    "master_port": (
        '"--master-port", "1"',
        f"args[0]: --master-port {LAUNCHER} the launcher chooses the port; leave it out",
    ),
    "headless_in_shell_quotes": (
        "\"'--headless'\"",
        f"args[0]: --headless {LAUNCHER} the launcher gives it to every rank but 0; leave it out",
    ),
    "model": (
        '"--model", "org/name"',
        "args[0]: --model doesn't belong here: the checkpoint is the key model "
        "(with [composed_model] the engine gets its mount)",
    ),
    "end_of_flags": (
        '"--x", "--"',
        "args[1]: -- doesn't belong here: the launcher's own flags follow the recipe's, "
        "and behind -- they are no flags",
    ),
    "model_as_first_word": (
        '"org/name", "--x"',
        'args[0]: expected a flag, got "org/name"; the checkpoint is the key model',
    ),
    "other_size": (
        '"--x", "-tp", "4"',
        "args[1]: --tensor-parallel-size 4 contradicts tensor_parallel_size = 2; "
        "leave it out of args",
    ),
    "equal_then_other_size": (
        '"--tensor-parallel-size=2", "--tensor_parallel_size", "1"',
        "args[1]: --tensor-parallel-size 1 contradicts tensor_parallel_size = 2; "
        "leave it out of args",
    ),
    "size_without_value": (
        '"--pipeline-parallel-size"',
        "args[0]: --pipeline-parallel-size without a value contradicts "
        "pipeline_parallel_size = 1; leave it out of args",
    ),
    "other_backend": (
        '"--distributed-executor-backend", "ray"',
        "args[0]: --distributed-executor-backend ray contradicts "
        'distributed_backend = "mp"; leave it out of args',
    ),
    "data_parallel": (
        '"-dp", "2"',
        "args[0]: --data-parallel-size 2 isn't supported; leave it out",
    ),
    "port": (
        '"--port", "http"',
        "args[0]: --port expects a port from 1 to 65535, got http",
    ),
    "no_port": ('"--port"', "args[0]: --port expects a port from 1 to 65535, got nothing"),
}


@pytest.mark.parametrize("case", WRONG_ARGS)
def test_args_that_cannot_work_are_refused_at_their_place(case: str, write: Write) -> None:
    args, said = WRONG_ARGS[case]
    assert message(write(args=f"[{args}]")) == f"{WHERE}: {said}"


@pytest.mark.parametrize(
    "args",
    [
        '"--tensor-parallel-size", "2", "--distributed-executor-backend", "mp"',
        '"--tensor_parallel_size=2"',
        '"-tp", "2", "-pp", "1", "-dp", "1"',
        '"--port", "9000", "--host", "127.0.0.1"',
        '"--master", "x"',
        '"--max-model-len", "-1"',
    ],
)
def test_args_that_agree_with_the_keys_are_kept_as_they_are(args: str, write: Write) -> None:
    assert ", ".join(f'"{word}"' for word in load(write(args=f"[{args}]")).args) == args


WRONG_ENV = {
    "VLLM_HOST_IP": f"it {LAUNCHER} it is vllm_fabric_address of each node in the inventory",
    "NCCL_SOCKET_IFNAME": f"it {LAUNCHER} it is vllm_interfaces of each node in the inventory",
    "GLOO_SOCKET_IFNAME": f"it {LAUNCHER} it is vllm_interfaces of each node in the inventory",
    "NCCL_IB_HCA": f"it {LAUNCHER} it is vllm_hcas of each node in the inventory",
    "NCCL_IB_GID_INDEX": f"it {LAUNCHER} every node looks it up at each start, for it moves; "
    "leave it out",
    "VLLM_PORT": "not allowed: it breaks the mp backend (vllm-project/vllm#16250); "
    "the port of the API is --port in args",
    '"A B"': "expected the name of a variable: letters, digits and _",
    "start_timeout": "is a key of the recipe; it belongs above the first [table] of the file",
}


@pytest.mark.parametrize("name", WRONG_ENV)
@pytest.mark.parametrize("value", ['"1"', "1"])
def test_variable_that_is_not_the_recipes_is_refused(name: str, value: str, write: Write) -> None:
    found = message(write(f"[env]\n{name} = {value}"))
    assert found == f"{WHERE}: env.{name}: {WRONG_ENV[name]}"


def test_env_keeps_order_empty_values_and_other_nccl_variables(write: Write) -> None:
    recipe = load(write('[env]\nNCCL_BUFFSIZE = "1"\nB = ""\nA = "x\\ny"'))
    assert list(recipe.env.items()) == [("NCCL_BUFFSIZE", "1"), ("B", ""), ("A", "x\ny")]


WRONG_COMPOSED = {
    "unknown": (
        COMPOSED + 'revison = "main"',
        "composed_model.sources[0].revison: unknown key; did you mean revision?",
    ),
    "recipe_key_too_low": (
        COMPOSED + "start_timeout = 60",
        "composed_model.sources[0].start_timeout: unknown key in composed_model.sources[0]; "
        "start_timeout belongs above the first [table] of the file",
    ),
    "wrong_type": (
        COMPOSED.replace('"org/name"', "true"),
        "composed_model.sources[0].repo: expected text, got true; write it in quotes",
    ),
    "repo_url": (
        COMPOSED.replace("org/name", "https://hf/x"),
        "composed_model.sources[0].repo: expected a Hugging Face repository such as org/name, "
        'got "https://hf/x"',
    ),
    "revision_outside": (
        COMPOSED + 'revision = "../x"',
        'composed_model.sources[0].revision: expected a commit, a tag or a branch, got "../x"',
    ),
    "one_bracket": (
        COMPOSED.replace("[[", "[").replace("]]", "]"),
        "composed_model.sources: expected a list, got a table; "
        "write [[composed_model.sources]], with two brackets",
    ),
    "two_brackets": (
        '[[composed_model]]\nmount = "/model"',
        "composed_model: expected a table, got a list; write [composed_model], with one bracket",
    ),
    "texts": (
        '[composed_model]\nmount = "/model"\nsources = ["org/name"]',
        'composed_model.sources[0]: expected a table, got "org/name"; '
        "write one [[composed_model.sources]] table for each",
    ),
    "no_sources": (
        '[composed_model]\nmount = "/model"',
        "composed_model.sources: missing: Repositories whose whole snapshots are linked, "
        "in this order; at least one.",
    ),
    "empty_sources": (
        '[composed_model]\nmount = "/model"\nsources = []',
        "composed_model.sources: expected at least one source, got none",
    ),
    "source_twice": (
        COMPOSED + '[[composed_model.sources]]\nrepo = "org/name"',
        "composed_model.sources[1].repo: org/name is already sources[0]",
    ),
    "relative_mount": (
        COMPOSED.replace("/model", "model"),
        'composed_model.mount: expected an absolute path, got "model"',
    ),
    "root_mount": (
        COMPOSED.replace("/model", "/"),
        'composed_model.mount: expected the plain path of a file or folder, got "/"',
    ),
    "untidy_mount": (
        COMPOSED.replace("/model", "/a/../model/"),
        "composed_model.mount: expected the plain path of a file or folder, "
        'got "/a/../model/"; write /model',
    ),
    "comma": (
        COMPOSED.replace("/model", "/a,b"),
        'composed_model.mount: expected a path without , : " and control characters, got "/a,b"',
    ),
    "one_name_twice": (
        COMPOSED + '[[composed_model.local_files]]\nhost = "/a/w.bin"\n'
        '[[composed_model.local_files]]\nhost = "/b/w.bin"',
        "composed_model.local_files[1].host: the name w.bin is already taken by local_files[0]",
    ),
}


@pytest.mark.parametrize("case", WRONG_COMPOSED)
def test_wrong_composed_model_is_said_with_its_key_path(case: str, write: Write) -> None:
    tail, said = WRONG_COMPOSED[case]
    assert message(write(tail)) == f"{WHERE}: {said}"


def test_everything_wrong_in_a_file_is_said_at_once(write: Write) -> None:
    path = write(COMPOSED.replace("org", "-"), name="1", args='["--nnodes", 2]', nmae='"x"')
    assert message(path).splitlines() == [
        f"{WHERE}: name: expected text, got the number 1; write it in quotes",
        f"{WHERE}: args[0]: --nnodes {LAUNCHER} the number of nodes is the key required_nodes",
        f"{WHERE}: args[1]: expected text, got the number 2; write it in quotes",
        f"{WHERE}: composed_model.sources[0].repo: expected a Hugging Face repository such as "
        'org/name, got "-/name"',
        f"{WHERE}: nmae: unknown key; did you mean name?",
    ]


def test_all_contradictions_are_said_at_once(write: Write) -> None:
    path = write(required_nodes="4", build_profile='"x"', args='["-tp", "4"]')
    assert [line.split(": ")[1] for line in message(path).splitlines()] == [
        "build_profile",
        "required_nodes",
        "args[0]",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = [1,\nc", "3:1: not TOML: Invalid value"),
        ('engine = "vllm', "1:15: not TOML: Unterminated string"),
        ("a = 1\n\nb c = 2\n", "3:3: not TOML: Expected '=' after a key in a key/value pair"),
        ("", ' engine: missing: The engine; "vllm" is the only one.'),
    ],
)
def test_toml_mistake_says_file_line_and_column(text: str, said: str, write: Write) -> None:
    path = write()
    path.write_text(text)
    assert message(path).splitlines()[0] == f"{WHERE}:{said}"


def test_file_that_is_not_utf8_is_said_with_its_line(write: Write) -> None:
    path = write()
    path.write_bytes(b'a = "x"\nb = "\xff"\n')
    assert message(path) == f"{WHERE}:2: isn't UTF-8; save the file as UTF-8"


def test_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write) -> None:
    path = write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load(path).name == "A name"


def test_file_that_is_not_there_is_said(write: Write) -> None:
    path = write().parent / "other.toml"
    assert message(path) == "recipes/x/other.toml: can't be read: No such file or directory"


def test_file_outside_the_working_directory_is_shown_whole(write: Write, tmp_path: Path) -> None:
    path = write(zzzz="1")
    os.chdir(tmp_path / "recipes" / "x")
    assert message(path).startswith("recipe.toml: zzzz: ")
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    assert message(path).startswith(f"{path}: zzzz: ")


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("""'{"image":2}'""", '{"image":2}'),
        ("""\n '{"a b":"c"}' \n""", '{"a b":"c"}'),
        ('"a\\"b"', 'a"b'),
        ("'it'\\''s'", "it's"),
        ("''", ""),
        ("'a' 'b'", "'a' 'b'"),
        ("'a", "'a"),
        ("'a\"", "'a\""),
        ("'", "'"),
        ("a'b'", "a'b'"),
        (" plain ", " plain "),
        ("", ""),
        ('{"a":"b"}', '{"a":"b"}'),
        ("$HOME %d \\n", "$HOME %d \\n"),
    ],
)
def test_only_a_word_that_is_one_quoted_word_loses_its_quotes(word: str, read: str) -> None:
    assert words.unquote(word) == read


@given(st.text())
def test_text_in_shell_quotes_arrives_as_the_text(text: str) -> None:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    assert words.unquote(quoted) == text


@given(st.text().filter(lambda text: not text.strip().startswith(("'", '"'))))
def test_text_without_quotes_arrives_byte_for_byte(text: str) -> None:
    assert words.unquote(text) == text


@pytest.mark.parametrize(
    "image",
    [
        "vllm-cpu:lab",
        "jovian-r37-ds41:local",
        "ghcr.io/org/name:v1.2",
        "127.0.0.1:5000/a/b_c@sha256:" + "a" * 64,
    ],
)
def test_images_as_docker_names_them_are_taken(image: str) -> None:
    assert words.image(image) == image


@pytest.mark.parametrize("size", ["32gb", "32g", "32GiB", "1.5g", "1024", "64m"])
def test_amounts_as_docker_reads_them_are_taken(size: str) -> None:
    assert words.size(size) == size


def test_every_key_is_documented() -> None:
    schema = Recipe.model_json_schema()
    for table in (schema, *schema["$defs"].values()):
        for key, field in table["properties"].items():
            assert field.get("description", "").endswith("."), key
