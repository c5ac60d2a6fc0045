"""The fabric where the inventory leaves it out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pyinfra_vllm import fabric
from pyinfra_vllm.cluster import FABRIC_KEYS, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState
from unit import gb10
from unit.gangs import sparks


def bare(**said: Any) -> Gang:
    """Four nodes whose inventory says nothing of the fabric but ``said``."""
    return gang_of(
        {
            f"spark-{rank}": {"vllm_rank": rank, "vllm_hf_cache": "/mnt/nas/hub", **said}
            for rank in range(4)
        },
        4,
    )


def shape(gang: Gang) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(node.fabric_address, node.interfaces, node.hcas) for node in gang.nodes]


def with_link(states: Mapping[str, NodeState], link: dict[str, Any]) -> dict[str, NodeState]:
    """The same nodes with one more interface; ``{rank}`` stands for the rank."""
    found = {}
    for rank, (name, state) in enumerate(states.items()):
        document = json.loads(state.model_dump_json(by_alias=True))
        text = json.dumps(link).replace("RANK", str(rank))
        document["interfaces"]["value"].append(json.loads(text))
        found[name] = NodeState.model_validate(document)
    return found


ETHERNET = {"name": "eth0", "addresses": ["10.0.0.1RANK"], "networks": ["10.0.0.1RANK/24"],
            "state": "up", "speed": 10000}  # fmt: skip
DOCKER = {"name": "docker0", "addresses": ["172.17.0.1"], "networks": ["172.17.0.1/16"],
          "state": "up"}  # fmt: skip
SAME = {"name": "usb0", "addresses": ["192.168.7.2"], "networks": ["192.168.7.2/24"],
        "state": "up", "speed": 400000}  # fmt: skip


def test_the_rdma_ports_that_all_nodes_share_are_the_fabric() -> None:
    states = with_link(with_link(with_link(gb10.states(), ETHERNET), DOCKER), SAME)
    assert shape(fabric.derived(bare(), states)) == shape(sparks(4))


def test_what_the_inventory_says_is_left_as_it_is() -> None:
    gang = sparks(4)
    assert fabric.derived(gang, gb10.states()) is gang
    assert [node.hcas for node in fabric.derived(bare(vllm_hcas=[]), gb10.states()).nodes] == [
        ()
    ] * 4


def test_without_rdma_the_fastest_shared_link_is_taken() -> None:
    states = with_link(gb10.states(), ETHERNET)
    for name, state in states.items():
        document = json.loads(state.model_dump_json(by_alias=True))
        document["rdma"]["value"] = {"devices": [], "ports": []}
        document["interfaces"]["value"][1]["speed"] = 1000
        states[name] = NodeState.model_validate(document)
    assert shape(fabric.derived(bare(), states))[2] == ("192.168.100.12", ("enp1s0f0np0",), ())


def test_what_was_derived_is_recorded_and_kept_while_the_node_has_it() -> None:
    first = fabric.derived(bare(), gb10.states())
    record = fabric.record(first)
    assert record["spark-1"] == {
        "vllm_fabric_address": "192.168.100.11",
        "vllm_interfaces": ["enp1s0f0np0", "enP2p1s0f0np0"],
        "vllm_hcas": ["rocep1s0f0", "roceP2p1s0f0"],
    }
    assert tuple(record["spark-1"]) == FABRIC_KEYS
    down = released(gb10.states(), record)
    for name, state in down.items():
        document = json.loads(state.model_dump_json(by_alias=True))
        document["interfaces"]["value"][0]["state"] = "down"
        document["rdma"]["value"]["ports"][0]["state"] = "DOWN"
        down[name] = NodeState.model_validate(document)
    assert shape(fabric.derived(bare(), down)) == shape(first), "a link that is down is a finding"
    del down["spark-2"]
    assert shape(fabric.derived(bare(), down)) == shape(first), "so is a node that doesn't answer"


def test_an_address_that_is_gone_is_derived_anew() -> None:
    record = fabric.record(fabric.derived(bare(), gb10.states()))
    record["spark-1"]["vllm_fabric_address"] = "192.168.100.99"
    again = fabric.derived(bare(), released(gb10.states(), record))
    assert again.node("spark-1").fabric_address == "192.168.100.11"


def test_nodes_without_a_common_subnet_are_told_what_they_have() -> None:
    alone = {
        "name": "spark-1",
        "addresses": ["10.9.9.9"],
        "networks": ["10.9.9.9/24"],
        "state": "up",
    }
    states = gb10.states()
    document = json.loads(states["spark-1"].model_dump_json(by_alias=True))
    document["interfaces"]["value"] = [alone]
    states["spark-1"] = NodeState.model_validate(document)
    with pytest.raises(UserError, match=r"spark-1: vllm_fabric_address: .* it has 10\.9\.9\.9"):
        fabric.derived(bare(), states)


def test_a_first_deploy_needs_every_node_or_its_address() -> None:
    states = gb10.states()
    del states["spark-3"]
    with pytest.raises(UserError, match=r"spark-3: vllm_fabric_address: .* doesn't answer"):
        fabric.derived(bare(), states)


def test_what_was_derived_is_shown() -> None:
    line = fabric.notes(fabric.derived(bare(), gb10.states()))[0]
    assert line.startswith("spark-0: found on the node") and "'192.168.100.10'" in line


def released(states: dict[str, NodeState], record: dict[str, Any]) -> dict[str, NodeState]:
    """The nodes after a release that recorded what was derived."""
    digest = "a" * 64
    about = {"exists": True, "type": "file", "text": json.dumps({"derived": record})}
    release = {"exists": True, "type": "directory", "files": {"release.json": about}}
    folder = {"current": f"releases/{digest}", "releases": {digest: release}}
    found = {}
    for name, state in states.items():
        document = json.loads(state.model_dump_json(by_alias=True))
        document["gang"] = {"ok": True, "value": folder}
        found[name] = NodeState.model_validate(document)
    return found
