"""The command of one rank."""

from __future__ import annotations

import pytest

from pyinfra_vllm import catalog, serving
from pyinfra_vllm.recipe import Recipe
from unit.gangs import spark, sparks

OURS = ["--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless"]


@pytest.fixture
def recipe() -> Recipe:
    return catalog.find("tiny-cpu-4x").recipe


def test_ranks_differ_only_in_rank_and_headless(recipe: Recipe) -> None:
    gang = sparks(4)
    commands = [list(serving.argv(recipe, gang, node)) for node in gang.nodes]
    for rank, command in enumerate(commands):
        assert command[command.index("--node-rank") + 1] == str(rank)
        assert ("--headless" in command) == (rank > 0)
        command[command.index("--node-rank") + 1] = "R"
        if "--headless" in command:
            command.remove("--headless")
    assert all(command == commands[0] for command in commands)


def test_every_rank_meets_at_the_head(recipe: Recipe) -> None:
    gang = sparks(4)
    for node in gang.nodes:
        command = serving.argv(recipe, gang, node)
        assert command[command.index("--master-addr") + 1] == "192.168.100.10"
        assert command[command.index("--master-port") + 1] == str(serving.MASTER_PORT)
        assert command[command.index("--nnodes") + 1] == "4"


def test_the_engine_is_given_the_mount_of_a_composed_model(recipe: Recipe) -> None:
    assert serving.argv(recipe, sparks(4), spark(0))[:3] == ("vllm", "serve", "/model")


def test_the_engine_is_given_the_model_without_one(recipe: Recipe) -> None:
    plain = recipe.model_copy(update={"composed_model": None})
    assert serving.argv(plain, sparks(4), spark(0))[2] == "tiny-random/llama-tp4"
    mounts = serving.mounts(plain, spark(0), "/tmp/composed", "/var/cache/x")
    assert (mounts[1].source, mounts[1].target) == (
        "/mnt/nas/huggingface/hub",
        "/root/.cache/huggingface/hub",
    )


def test_a_gang_of_one_has_no_place_in_a_gang() -> None:
    recipe = catalog.find("tiny-cpu-1x").recipe
    command = serving.argv(recipe, sparks(1), spark(0))
    assert not set(OURS) & set(command)


def test_the_recipes_words_stand_whole_and_in_order(recipe: Recipe) -> None:
    command = serving.argv(recipe, sparks(4), spark(1))
    assert command[3 : 3 + len(recipe.args)] == recipe.args


def test_sizes_said_in_args_are_not_said_again() -> None:
    recipe = catalog.find("dsv41-flash-jovian-r37-4x").recipe
    command = serving.argv(recipe, sparks(4), spark(0))
    assert command.count("--distributed-executor-backend") == 1
    assert command.count("--tensor-parallel-size") == 1


def test_json_arguments_arrive_without_their_shell_quotes() -> None:
    recipe = catalog.find("dsv41-flash-jovian-r37-4x").recipe
    command = serving.argv(recipe, sparks(4), spark(0))
    assert command[command.index("--engram-config") + 1] == (
        '{"cpu_offload":false,"table_memory":"disk"}'
    )


def test_environ_is_the_recipes_then_the_nodes(recipe: Recipe) -> None:
    environ = serving.environ(recipe, spark(2))
    assert list(environ) == [
        *recipe.env,
        "VLLM_HOST_IP",
        "NCCL_SOCKET_IFNAME",
        "GLOO_SOCKET_IFNAME",
        "NCCL_IB_HCA",
    ]
    assert environ["VLLM_HOST_IP"] == "192.168.100.12"
    assert environ["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), ("127.0.0.1", 8000)),
        (("--port", "9000"), ("127.0.0.1", 9000)),
        (("--port=9000", "--host=0.0.0.0"), ("127.0.0.1", 9000)),
        (("--host", "10.0.0.5"), ("10.0.0.5", 8000)),
    ],
)
def test_host_and_port_of_the_args_are_honoured(
    recipe: Recipe, args: tuple[str, ...], expected: tuple[str, int]
) -> None:
    said = recipe.model_copy(update={"args": args})
    api = serving.api(said)
    assert (api.address, api.port) == expected


def test_no_device_is_asked_for_that_the_node_has_not(recipe: Recipe) -> None:
    bare = serving.options(recipe, spark(0).__class__("n", 0, "", (), (), "/hub", False), "/s")
    assert "--gpus" not in bare
    assert "--device" not in bare
    assert "--gpus" in serving.options(recipe, spark(0), "/s")
