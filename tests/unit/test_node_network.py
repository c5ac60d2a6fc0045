"""Which addresses the node has."""

from __future__ import annotations

import pytest

from pyinfra_vllm.node.collect import network


def test_addresses_are_those_of_ip() -> None:
    shown = [
        {
            "ifname": "enp1s0f0np0",
            "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 24}, {}],
        },
        {"ifname": "down0", "addr_info": []},
        {},
    ]
    assert network.from_ip(shown) == {"enp1s0f0np0": ["10.0.0.1/24"], "down0": []}


def test_without_iproute2_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ip = {link["name"]: link for link in network.interfaces()}
    monkeypatch.setenv("PATH", "/nowhere")
    without = {link["name"]: link for link in network.interfaces()}
    assert without.keys() == with_ip.keys()
    assert "127.0.0.1" in without["lo"]["addresses"]
    assert "127.0.0.1/8" in without["lo"]["networks"]
    assert without["lo"]["mtu"] == with_ip["lo"]["mtu"] > 0
