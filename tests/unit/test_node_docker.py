"""What dockerd says of itself, our images, and the containers that matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_dockerd import dockerd
from pyinfra_vllm.node.collect import docker, engine
from pyinfra_vllm.node.collect.parts import Unavailable

BUILD = "pyinfra-vllm.build"
GANG = "pyinfra-vllm.gang"
INFO = {
    "ServerVersion": "28.2.2",
    "DockerRootDir": "/",
    "Driver": "overlay2",
    "Runtimes": {"runc": {}, "nvidia": {}},
    "DefaultRuntime": "runc",
}


def image(name: str, **labels: str) -> dict[str, Any]:
    return {
        "Id": f"sha256:{name}",
        "RepoTags": [f"{name}:local"],
        "Config": {"Labels": labels, "Env": ["HF_TOKEN=hf_verysecret"]},
        "RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:2"]},
        "Size": 12,
    }


def container(name: str, labels: dict[str, str], state: str = "running", **host: Any) -> Any:
    return {
        "Id": name * 4,
        "Name": f"/{name}",
        "Image": "sha256:a",
        "Config": {
            "Image": "a:local",
            "Labels": labels,
            "Env": ["VLLM_API_KEY=verysecret"],
            "Cmd": ["--api-key", "verysecret"],
        },
        "State": {"Status": state, "ExitCode": 137, "Pid": 0},
        "HostConfig": host,
        "Mounts": [{"Source": "/mnt/nas/hub", "Destination": "/mnt/nas/hub", "RW": False}],
    }


def answers(*containers: Any) -> dict[str, Any]:
    listed = [
        {"Id": c["Id"], "Labels": c["Config"]["Labels"], "State": c["State"]["Status"]}
        for c in containers
    ]
    return {
        "/containers/json": listed,
        **{f"/containers/{c['Id']}/json": c for c in containers},
    }


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(table: dict[str, Any]) -> Any:
        running = dockerd(tmp_path / "docker.sock", table)
        monkeypatch.setenv("DOCKER_HOST", running.__enter__())
        return running

    started: list[Any] = []
    yield lambda table: started.append(start(table))
    for running in started:
        running.__exit__(None, None, None)


def test_the_daemon_is_described(serve: Any) -> None:
    serve({"/info": INFO})
    found = docker.docker()
    assert found["version"] == "28.2.2"
    assert found["runtimes"] == ["nvidia", "runc"]
    assert found["data_root_disk"]["total"] > 0


def test_images_with_a_build_digest_and_those_with_a_tag_asked_for_are_shown_once(
    serve: Any,
) -> None:
    ours, tagged = image("a", **{BUILD: "f" * 64}), image("b")
    serve(
        {
            "/images/json": [{"Id": "sha256:a"}],
            "/images/sha256:a/json": ours,
            "/images/a:local/json": ours,
            "/images/reg.example/b:local/json": tagged,
        }
    )
    found = docker.images(BUILD, ["a:local", "reg.example/b:local", "absent:local"])
    assert [(item["id"], item["build"]) for item in found] == [
        ("sha256:a", "f" * 64),
        ("sha256:b", None),
    ]
    assert found[0]["layers"] == ["sha256:1", "sha256:2"]
    assert "secret" not in str(found)


def test_our_containers_are_shown_in_every_state_and_without_secrets(serve: Any) -> None:
    labels = {GANG: "main", "pyinfra-vllm.rank": "0", "org.example": "x"}
    serve(answers(container("vllm-main", labels, "exited")))
    (found,) = docker.containers(GANG, None)
    assert found["ours"] and found["state"] == "exited" and found["exit_code"] == 137
    assert found["labels"] == {GANG: "main", "pyinfra-vllm.rank": "0"}
    assert found["mounts"][0]["source"] == "/mnt/nas/hub" and found["mounts"][0]["read_only"]
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ({}, False),
        ({"DeviceRequests": [{"Driver": "nvidia", "Count": -1}]}, True),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]}, True),
        ({"Runtime": "nvidia"}, True),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}]}, True),
        ({"Devices": [{"PathOnHost": "/dev/fuse"}]}, False),
        ({"PortBindings": {"80/tcp": [{"HostIp": "", "HostPort": "8000"}]}}, True),
        ({"PortBindings": {"80/tcp": None, "81/tcp": [{"HostPort": ""}]}}, False),
    ],
)
def test_a_foreign_container_is_shown_when_it_has_a_gpu_or_the_api_port(
    serve: Any, host: dict[str, Any], shown: bool
) -> None:
    serve(answers(container("other", {}, **host)))
    assert [item["name"] for item in docker.containers(GANG, 8000)] == ["other"] * shown


def test_a_foreign_container_that_has_ended_is_nobodys_concern(serve: Any) -> None:
    serve(answers(container("other", {}, "exited", Runtime="nvidia")))
    assert docker.containers(GANG, 8000) == []


def test_a_container_removed_between_two_questions_is_no_error(serve: Any) -> None:
    table = answers(container("vllm-main", {GANG: "main"}))
    del table[f"/containers/{'vllm-main' * 4}/json"]
    serve(table)
    assert docker.containers(GANG, None) == []


def test_docker_that_is_not_installed_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"^docker: not installed$"):
        engine.ask("/info")


def test_a_daemon_that_does_not_run_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="the daemon doesn't run"):
        engine.ask("/info")


def test_what_dockerd_refuses_is_told_in_its_own_words(serve: Any) -> None:
    serve({})
    with pytest.raises(Unavailable, match="no such thing: /info"):
        docker.docker()
