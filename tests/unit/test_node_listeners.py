"""Who has the ports that a gang needs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_dockerd import dockerd
from pyinfra_vllm.node.collect import listeners


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_the_process_that_listens_is_named(listening: int) -> None:
    (found,) = listeners.listeners([listening])
    assert found["pid"] == os.getpid()
    assert found["addresses"] == ["127.0.0.1"]
    assert found["process"] == Path("/proc/self/comm").read_text().strip()
    assert found["command"]


def test_a_port_without_listener_has_nobody() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert listeners.listeners([bound.getsockname()[1]]) == []
    assert listeners.listeners([]) == []


def test_a_listener_on_ipv6_is_found() -> None:
    if not Path("/proc/net/tcp6").exists():
        pytest.skip("no IPv6 on this machine")
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::", 0))
        server.listen()
        (found,) = listeners.listeners([server.getsockname()[1]])
    assert found["addresses"] == ["::"]


@pytest.mark.skipif(sys.byteorder != "little", reason="the digits are as x86 and ARM write them")
def test_addresses_are_read_in_the_byte_order_of_the_machine() -> None:
    assert listeners.address_of("0100007F") == "127.0.0.1"
    assert listeners.address_of("00000000000000000000000001000000") == "::1"


@pytest.mark.parametrize(
    "line",
    [
        "0::/system.slice/docker-{id}.scope",
        "4:memory:/docker/{id}",
        "0::/docker/buildx/{id}/init",
    ],
)
def test_the_container_of_a_process_is_read_from_its_cgroup(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "0123456789abcdef" * 4
    monkeypatch.setattr(listeners, "read_text", lambda path: line.format(id=name) + "\n")
    assert listeners.container_of(17) == name
    monkeypatch.setattr(listeners, "read_text", lambda path: "0::/system.slice/ssh.service\n")
    assert listeners.container_of(17) is None


ID = "0123456789abcdef" * 4
RUNNING = [
    {"Id": "f" * 64, "Names": ["/other"], "Ports": [{"PrivatePort": 80}]},
    {"Id": ID, "Names": ["/engine"], "Ports": [{"PrivatePort": 80, "PublicPort": 8000}]},
]


@pytest.mark.parametrize(
    ("process", "name"),
    [
        ({"process": "vllm", "container_id": ID}, "engine"),
        ({"process": "docker-proxy", "container_id": None}, "engine"),
        ({"process": "sshd", "container_id": None}, None),
        ({"process": "vllm", "container_id": "e" * 64}, "e" * 64),
    ],
)
def test_the_container_behind_a_listener_is_named(
    process: dict[str, Any], name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "processes", lambda port: [process])
    with dockerd(tmp_path / "docker.sock", {"/containers/json": RUNNING}) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert listeners.listeners([8000]) == [{"port": 8000, **process, "container": name}]


def test_a_silent_dockerd_does_not_hide_the_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = {"process": "vllm", "container_id": ID}
    monkeypatch.setattr(listeners, "processes", lambda port: [process])
    monkeypatch.setattr(listeners, "_ANSWER_TIME", 0.1)
    with dockerd(tmp_path / "docker.sock", None) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert listeners.listeners([8000]) == [{"port": 8000, **process, "container": ID}]
