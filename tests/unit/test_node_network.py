"""Who has the API port, and which addresses the node has."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm.node.collect import network


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_the_process_that_listens_is_named(listening: int) -> None:
    (found,) = network.listeners(listening)
    assert found["pid"] == os.getpid()
    assert found["addresses"] == ["127.0.0.1"]
    assert found["process"] == Path("/proc/self/comm").read_text().strip()
    assert found["command"]


def test_a_port_without_listener_has_nobody() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert network.listeners(bound.getsockname()[1]) == []
    assert network.listeners(None) == []


def test_a_listener_on_ipv6_is_found() -> None:
    if not Path("/proc/net/tcp6").exists():
        pytest.skip("no IPv6 on this machine")
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::", 0))
        server.listen()
        (found,) = network.listeners(server.getsockname()[1])
    assert found["addresses"] == ["::"]


@pytest.mark.skipif(sys.byteorder != "little", reason="the digits are as x86 and ARM write them")
def test_addresses_are_read_in_the_byte_order_of_the_machine() -> None:
    assert network.address_of("0100007F") == "127.0.0.1"
    assert network.address_of("00000000000000000000000001000000") == "::1"


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
    monkeypatch.setattr(network, "_read", lambda path: line.format(id=name) + "\n")
    assert network.container_of(17) == name
    monkeypatch.setattr(network, "_read", lambda path: "0::/system.slice/ssh.service\n")
    assert network.container_of(17) is None


def test_addresses_are_those_of_ip() -> None:
    shown = [
        {
            "ifname": "enp1s0f0np0",
            "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 24}, {}],
        },
        {"ifname": "down0", "addr_info": []},
        {},
    ]
    assert network.from_ip(shown) == {"enp1s0f0np0": ["10.0.0.1"], "down0": []}


def test_without_iproute2_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ip = {link["name"]: link for link in network.interfaces()}
    monkeypatch.setenv("PATH", "/nowhere")
    without = {link["name"]: link for link in network.interfaces()}
    assert without.keys() == with_ip.keys()
    assert "127.0.0.1" in without["lo"]["addresses"]
    assert without["lo"]["mtu"] == with_ip["lo"]["mtu"] > 0
