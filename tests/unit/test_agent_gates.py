"""What must hold before an engine starts, and what docker is asked."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent_launch import launch_of
from pyinfra_vllm.agent import docker, gates
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.launch import Mount


def test_missing_mount_is_named_and_a_cache_is_made(tmp_path: Path) -> None:
    cache = Mount(str(tmp_path / "cache" / "x"), "/cache", False, True)
    gates.check_mounts((cache,), None)
    assert (tmp_path / "cache" / "x").is_dir()
    with pytest.raises(Unmet, match=f"{tmp_path}/nas is not on this node.*at /hub"):
        gates.check_mounts((Mount(str(tmp_path / "nas"), "/hub", True, False),), None)


def test_empty_read_only_folder_is_a_file_system_that_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(Unmet, match="is its file system mounted"):
        gates.check_mounts((Mount(str(tmp_path), "/hub", True, False),), None)
    gates.check_mounts((Mount(str(tmp_path), "/model", True, False),), str(tmp_path))


def test_fabric_address_must_be_on_an_interface() -> None:
    gates.check_address("127.0.0.1")
    gates.check_address(None)
    with pytest.raises(Unmet, match=r"192.0.2.1 is on no interface"):
        gates.check_address("192.0.2.1")
    with pytest.raises(Unmet, match="is no address"):
        gates.check_address("head.example")


def test_port_that_is_taken_names_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Unmet, match=f"port {port} is taken by pid {os.getpid()} "):
            gates.check_ports((port,))
    gates.check_ports((port,))


def test_head_needs_its_ports_and_a_worker_none() -> None:
    assert gates.ports(launch_of()) == (8000, 29501)
    assert gates.ports(launch_of(rank=1)) == ()


def _docker(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_docker_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _docker(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(Unmet, match="docker doesn't answer"):
        docker.ask(["docker", "ps"], seconds=0.3)


def test_docker_that_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unmet, match="docker is not installed"):
        docker.ask(["docker", "ps"])


def test_image_of_the_build_that_has_the_tag_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _docker(monkeypatch, tmp_path, '[ "$2" = ls ] && printf "sha256:2\\nsha256:1\\n" || echo $ID')
    monkeypatch.setenv("ID", "sha256:1")
    assert docker.image_id(launch_of()) == "sha256:1"
    monkeypatch.setenv("ID", "sha256:9")
    assert docker.image_id(launch_of()) == "sha256:2"
    assert docker.image_id(launch_of(image={"build": None, "tag": "t"})) == "sha256:9"
