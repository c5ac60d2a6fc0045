"""What a node of the lab offers, tried on a lab of these tests' own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import control, nas
from pyinfra_vllm.lab.layout import BASE_IMAGE, WHEELS_IMAGE

from .conftest import Lab

pytestmark = pytest.mark.lab


def test_every_node_is_a_running_system_without_failed_units(own: Lab) -> None:
    for rank, node in enumerate(own.machines):
        control.reboot(own.name, node.name)  # transient units of other tests may have failed
        host = own.host(rank)
        assert own.ask(rank, "systemctl is-system-running --wait") == "running"
        assert host.check_output("hostname") == node.name
        assert host.service("docker").is_running
        assert host.interface("host0").addresses[0] == node.address
    ids = {own.ask(rank, "cat /etc/machine-id") for rank in range(4)}
    assert len(ids) == 4


def test_tmp_and_var_tmp_are_one_file_system_and_hard_links_work(own: Lab) -> None:
    shard = f"/{nas.LOCAL_SHARD}"
    own.ask(1, f"ln {shard} /tmp/linked && test {shard} -ef /tmp/linked && rm /tmp/linked")


def test_dockerd_keeps_images_as_overlay2_on_a_disk_of_its_own(own: Lab) -> None:
    assert own.ask(2, "docker info --format '{{.Driver}}'") == "overlay2"
    assert own.ask(2, "stat -f -c %T /var/lib/docker") != own.ask(2, "stat -f -c %T /")


def test_the_model_is_on_the_nas_read_only_and_its_shard_on_the_node(own: Lab) -> None:
    snapshots = "/mnt/nas/hub/models--tiny-random--llama-tp4/snapshots"
    shard = Path(nas.LOCAL_SHARD).name
    for rank in range(4):
        own.ask(rank, f"cmp {snapshots}/*/{shard} /{nas.LOCAL_SHARD}")
        with pytest.raises(UserError, match="Read-only file system"):
            own.ask(rank, "touch /mnt/nas/hub/x")


def test_command_lines_of_a_gpu_node_are_accepted(own: Lab) -> None:
    flags = (
        "--rm --init --network host --ipc host --ulimit memlock=-1 --ulimit nofile=1048576 "
        "--gpus all --device /dev/infiniband"
    )
    said = own.ask(0, f"docker run {flags} {BASE_IMAGE} ls /dev/infiniband")
    assert said.split() == ["rdma_cm", "uverbs0"]


def test_nodes_reach_each_other(own: Lab) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda rank: own.ask(rank, f"ping -c1 -W2 {own.name}-{3 - rank}"), range(4)))


def test_builds_on_the_head_reach_mirrors_and_the_wheels(own: Lab) -> None:
    dockerfile = (
        f"FROM {BASE_IMAGE}\n"
        f"RUN --mount=type=bind,from={WHEELS_IMAGE},source=/wheels,target=/wheels "
        "ls /wheels/torch-*+cpu-cp311-*.whl && apt-get update && "
        "python3 -m venv /v && /v/bin/pip install six\n"
    )
    for network in ("host", "default"):
        own.ask(
            0,
            f"printf %s '{dockerfile}' | "
            f"DOCKER_BUILDKIT=1 docker build --no-cache --network {network} - 2>&1",
        )
