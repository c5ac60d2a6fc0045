from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm import managed
from pyinfra_vllm.recipe import load
from recipe_files import WHERE, Write, message, writer


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    return writer(tmp_path)


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
        "args[1]: --port expects a port from 1 to 65535, got http",
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


@pytest.mark.parametrize(
    ("args", "place"),
    [
        ('"--config", "x.yaml"', "args[0]: --config doesn't belong here: what that file sets"),
        ('"--uds=/run/x"', "args[0]: --uds doesn't belong here: the launcher asks the head"),
        ('"--ssl_keyfile", "x"', "args[0]: --ssl_keyfile (that is --ssl-keyfile) doesn't belong"),
    ],
)
def test_flags_that_the_launcher_cannot_live_with_are_refused(
    args: str, place: str, write: Write
) -> None:
    assert message(write(args=f"[{args}]")).startswith(f"{WHERE}: {place}")


@pytest.mark.parametrize("name", [*managed.REFUSED_ENVIRONMENT, *managed.ENVIRONMENT])
def test_every_near_miss_says_where_it_belongs(name: str, write: Write) -> None:
    said = message(write(f'[env]\n{name} = "1"'))
    assert said.startswith(f"{WHERE}: env.{name}: ")
    assert message(write(secrets=f'["{name}"]')).startswith(f"{WHERE}: secrets[0]: ")


KEY = "sk-planted-secret-0123456789abcdef"


@pytest.mark.parametrize(
    ("changes", "tail", "place", "remedy"),
    [
        ({"args": f'["--api-key", "{KEY}"]'}, "", "args[0]", "VLLM_API_KEY"),
        ({"args": f'["--api_key={KEY}"]'}, "", "args[0]", "VLLM_API_KEY"),
        ({"args": f'["--api-k", "{KEY}"]'}, "", "args[0]", "VLLM_API_KEY"),
        ({"args": f'["--hf-token={KEY}"]'}, "", "args[0]", "HF_TOKEN"),
        ({}, f'[env]\nVLLM_API_KEY = "{KEY}"', "env.VLLM_API_KEY", "VLLM_API_KEY"),
        ({}, '[env]\nHF_TOKEN = "x"', "env.HF_TOKEN", "HF_TOKEN"),
        ({"args": f'["--hf-overrides", "{KEY}"]'}, "", "args[1]", "VLLM_API_KEY"),
        ({}, f'[env]\nANY = "{KEY}"', "env.ANY", "VLLM_API_KEY"),
    ],
)
def test_a_secret_in_a_recipe_is_refused_with_its_place_and_never_shown(
    changes: dict[str, str], tail: str, place: str, remedy: str, write: Write
) -> None:
    said = message(write(tail, **changes))
    assert said.splitlines()[0].startswith(f"{WHERE}: {place}: ")
    assert f'secrets = ["{remedy}"]' in said
    assert "planted" not in said


@pytest.mark.parametrize("name", ["DOCKER_HOST", "PATH", "https_proxy", "A=b", ""])
def test_a_secret_has_a_name_that_docker_itself_does_not_read(name: str, write: Write) -> None:
    assert message(write(secrets=f'["{name}"]')).startswith(f"{WHERE}: secrets[0]: ")


def test_a_secret_is_no_variable_too(write: Write) -> None:
    said = message(write('[env]\nA = "1"', secrets='["A", "B", "B"]'))
    assert said.splitlines() == [
        f"{WHERE}: secrets[0]: A is in [env] too; leave it out there",
        f"{WHERE}: secrets[2]: B is there twice",
    ]
