from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.cluster import Node, gang_of
from pyinfra_vllm.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def host(rank: int, **changes: Any) -> dict[str, Any]:
    """Data of a host with some keys changed; None leaves one out."""
    data = {
        "ssh_hostname": f"192.168.1.{10 + rank}",
        "vllm_rank": rank,
        "vllm_fabric_address": f"10.0.0.{10 + rank}",
        "vllm_hf_cache": "/mnt/nas/hub",
        **changes,
    }
    return {key: value for key, value in data.items() if value is not None}


def message(hosts: dict[str, dict[str, Any]], nodes: int = 2, name: str = "main") -> str:
    with pytest.raises(UserError) as caught:
        gang_of(hosts, nodes, name)
    return str(caught.value)


def test_nodes_stand_in_the_order_of_ranks() -> None:
    gang = gang_of({"a": host(1), "b": host(2), "c": host(0)}, 3)
    assert [node.name for node in gang.nodes] == ["c", "a", "b"]
    assert (gang.name, gang.size, gang.head.name, gang.node("b").rank) == ("main", 3, "c", 2)


def test_node_carries_all_of_its_data() -> None:
    data = host(0, vllm_interfaces=["e0", "e1"], vllm_hcas=("r0",), vllm_gpus=False)
    assert gang_of({"a": data}, 1).head == Node(
        name="a",
        rank=0,
        fabric_address="10.0.0.10",
        interfaces=("e0", "e1"),
        hcas=("r0",),
        hf_cache="/mnt/nas/hub",
        gpus=False,
    )


def test_defaults_are_no_interfaces_no_rdma_and_gpus() -> None:
    head = gang_of({"a": host(0)}, 1).head
    assert (head.interfaces, head.hcas, head.gpus) == ((), (), True)


def test_a_gang_of_one_needs_no_fabric_address() -> None:
    assert gang_of({"a": host(0, vllm_fabric_address=None)}, 1).head.fabric_address == ""


def test_ranks_beyond_the_recipe_are_left_out() -> None:
    gang = gang_of({"a": host(0), "b": host(1, vllm_hf_cache=None), "c": host(2)}, 1)
    assert [node.name for node in gang.nodes] == ["a"]


def test_nodes_of_another_gang_are_left_out() -> None:
    hosts = {"a": host(0), "b": host(0, vllm_gang="other"), "c": host(1, vllm_gang="other")}
    assert [node.name for node in gang_of(hosts, 1).nodes] == ["a"]
    assert [node.name for node in gang_of(hosts, 2, "other").nodes] == ["b", "c"]


def test_a_slash_at_the_end_of_the_cache_does_no_harm() -> None:
    assert gang_of({"a": host(0, vllm_hf_cache="/mnt/hub/")}, 1).head.hf_cache == "/mnt/hub"


def test_what_the_inventory_leaves_out_of_the_fabric_is_marked_to_be_derived() -> None:
    hosts = {"a": host(0, vllm_hcas=[]), "b": host(1, vllm_fabric_address=None)}
    first, second = gang_of(hosts, 2).nodes
    assert first.derived == ("vllm_interfaces",)
    assert second.derived == ("vllm_fabric_address", "vllm_interfaces", "vllm_hcas")
    assert gang_of({"a": host(0)}, 1).head.derived == ()


def test_checks_are_waived_by_name() -> None:
    assert gang_of({"a": host(0, vllm_waive=["swap", "clock"])}, 1).head.waive == ("swap", "clock")


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.3.4", "fd00::1", "2001:db8::1"])
def test_addresses_that_nodes_have_are_taken(address: str) -> None:
    hosts = {"a": host(0, vllm_fabric_address=address), "b": host(1)}
    assert gang_of(hosts, 2).head.fabric_address == address


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rank_missing": (
        {"vllm_rank": None},
        'vllm_rank: missing in the inventory; add "vllm_rank": 1',
    ),
    "rank_text": ({"vllm_rank": "1"}, 'vllm_rank: expected a whole number from 0, got "1"'),
    "rank_true": ({"vllm_rank": True}, "vllm_rank: expected a whole number from 0, got true"),
    "rank_negative": (
        {"vllm_rank": -1},
        "vllm_rank: expected a whole number from 0, got the number -1",
    ),
    "waive_text": (
        {"vllm_waive": "swap"},
        'vllm_waive: expected a list of names of checks, got "swap"; write ["swap"]',
    ),
    "waive_unknown": (
        {"vllm_waive": ["swop"]},
        'vllm_waive: there is no check "swop"; did you mean swap?',
    ),
    "address_name": (
        {"vllm_fabric_address": "spark-1.lan"},
        "vllm_fabric_address: expected an IP address of the node on the fabric, "
        'without name, port or prefix, got "spark-1.lan"',
    ),
    "address_prefix": (
        {"vllm_fabric_address": "10.0.0.11/24"},
        "vllm_fabric_address: expected an IP address of the node on the fabric, "
        'without name, port or prefix, got "10.0.0.11/24"',
    ),
    "address_number": (
        {"vllm_fabric_address": 10},
        "vllm_fabric_address: expected an IP address of the node on the fabric, got the number 10",
    ),
    "address_everywhere": (
        {"vllm_fabric_address": "127.0.0.1"},
        "vllm_fabric_address: expected an IP address of the node on the fabric, "
        'that other nodes can reach, got "127.0.0.1"',
    ),
    "address_twice": (
        {"vllm_fabric_address": "10.0.0.10"},
        "vllm_fabric_address: 10.0.0.10 is already that of a",
    ),
    "interfaces_text": (
        {"vllm_interfaces": "e0"},
        'vllm_interfaces: expected a list of names of network interfaces, got "e0"; write ["e0"]',
    ),
    "interface_comma": (
        {"vllm_interfaces": ["e0,e1"]},
        'vllm_interfaces: expected names of network interfaces, got "e0,e1" in the list',
    ),
    "hca_number": (
        {"vllm_hcas": [1]},
        "vllm_hcas: expected names of RDMA devices, got the number 1 in the list",
    ),
    "hca_twice": ({"vllm_hcas": ["r", "r"]}, "vllm_hcas: r stands in the list twice"),
    "hcas_number": (
        {"vllm_hcas": 1},
        "vllm_hcas: expected a list of names of RDMA devices, got the number 1",
    ),
    "cache_missing": (
        {"vllm_hf_cache": None},
        'vllm_hf_cache: missing in the inventory; add "vllm_hf_cache": "/mnt/nas/hub"',
    ),
    "cache_home": (
        {"vllm_hf_cache": "~/.cache/huggingface/hub"},
        'vllm_hf_cache: expected an absolute path, got "~/.cache/huggingface/hub"',
    ),
    "cache_root": (
        {"vllm_hf_cache": "/"},
        'vllm_hf_cache: expected the plain path of a file or folder, got "/"',
    ),
    "cache_list": ({"vllm_hf_cache": []}, "vllm_hf_cache: expected an absolute path, got a list"),
    "gpus_text": ({"vllm_gpus": "yes"}, 'vllm_gpus: expected True or False, got "yes"'),
    "gang_upper": (
        {"vllm_gang": "Main"},
        "vllm_gang: expected a short name of lower-case letters, digits and inner dashes, "
        'got "Main"',
    ),
    "unknown": (
        {"vllm_hca": ["r"]},
        "vllm_hca: unknown key of the inventory; did you mean vllm_hcas?",
    ),
    "unknown_far": (
        {"vllm_zzzzzzz": 1},
        "vllm_zzzzzzz: unknown key of the inventory; known here: vllm_alert, "
        "vllm_fabric_address, vllm_gang, vllm_gpus, vllm_hcas, vllm_hf_cache, vllm_image_source, "
        "vllm_interfaces, vllm_rank, vllm_secrets, vllm_waive",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_host_data_is_one_line_with_node_key_and_remedy(case: str) -> None:
    changes, said = WRONG[case]
    assert message({"a": host(0), "b": host(1, **changes)}) == f"b: {said}"


def test_two_nodes_with_one_rank_are_refused() -> None:
    hosts = {"a": host(0), "b": host(1), "c": host(1, vllm_fabric_address="10.0.0.30")}
    assert message(hosts) == "c: vllm_rank: 1 is already that of b"


def test_fewer_nodes_than_the_recipe_needs_are_refused_with_both_figures() -> None:
    assert message({"a": host(0), "b": host(1)}, 4) == (
        "gang main: the recipe needs 4 nodes, the inventory has 2: a, b"
    )


def test_a_gang_that_nobody_is_in_is_refused() -> None:
    assert message({"a": host(0)}, 1, "other") == (
        "gang other: the recipe needs 1 nodes, the inventory has 0: none"
    )


def test_a_gap_in_the_ranks_is_refused() -> None:
    hosts = {"a": host(0), "b": host(1), "c": host(3)}
    assert message(hosts, 3) == "gang main: no node has rank 2; the recipe needs ranks 0 to 2"


def test_everything_wrong_on_all_nodes_is_said_at_once() -> None:
    hosts = {
        "a": host(0, vllm_hf_cache="hub", vllm_hcs=[]),
        "b": host(0),
        "c": host(2, vllm_rank=None),
        "d": host(1, vllm_fabric_address=None),
    }
    assert message(hosts, 4).splitlines() == [
        "a: vllm_hcs: unknown key of the inventory; did you mean vllm_hcas?",
        'a: vllm_hf_cache: expected an absolute path, got "hub"',
        'c: vllm_rank: missing in the inventory; add "vllm_rank": 1',
        "b: vllm_rank: 0 is already that of a",
        "b: vllm_fabric_address: 10.0.0.10 is already that of a",
    ]


def test_data_of_others_is_nobodys_business() -> None:
    assert gang_of({"a": {**host(0), "rank": "x", "VLLM_RANK": 7, "hcas": 1}}, 1).size == 1


def test_inventory_of_four_gb10_nodes_loads_without_a_node_and_makes_a_gang() -> None:
    done = subprocess.run(
        [
            Path(sys.executable).with_name("pyinfra"),
            "inventory/gb10.py",
            "debug-inventory",
            "--json",
        ],
        cwd=ROOT,
        env={**os.environ, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    hosts = {one["name"]: one["data"] for one in json.loads(done.stdout)}
    gang = gang_of(hosts, 4)
    assert [node.name for node in gang.nodes] == ["spark-0", "spark-1", "spark-2", "spark-3"]
    assert gang.head.hcas == ("rocep1s0f0", "roceP2p1s0f0")
    assert len({node.fabric_address for node in gang.nodes}) == 4
