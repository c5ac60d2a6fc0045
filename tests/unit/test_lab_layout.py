from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import network, state
from pyinfra_vllm.lab.layout import Layout, check_name, networks

LAB = Layout("lab", ipaddress.IPv4Network("10.213.7.0/24"))


def test_nodes_are_named_and_addressed_by_rank() -> None:
    assert [(m.name, m.rank, m.address) for m in LAB.machines] == [
        ("lab-0", 0, "10.213.7.10"),
        ("lab-1", 1, "10.213.7.11"),
        ("lab-2", 2, "10.213.7.12"),
        ("lab-3", 3, "10.213.7.13"),
    ]


@pytest.mark.parametrize("name", ["lab-2", "2"])
def test_a_node_is_found_by_name_or_rank(name: str) -> None:
    assert LAB.machine(name).rank == 2


def test_an_unknown_node_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UserError, match=r"'lab-9'.*lab-0, lab-1, lab-2, lab-3"):
        LAB.machine("lab-9")


def test_names_of_bridge_and_links_fit_into_an_interface_name() -> None:
    longest = Layout(check_name("abcdefghi"), LAB.network)
    assert len(longest.bridge) <= 15
    assert all(len(f"vb-{machine.name}") <= 15 for machine in longest.machines)


@pytest.mark.parametrize("name", ["", "Lab", "a-b", "../x", "abcdefghij", "1a", "a b", "a\n"])
def test_a_name_that_fits_no_interface_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="lower-case"):
        check_name(name)


def test_a_lab_gets_the_same_network_every_time() -> None:
    assert next(networks("lab")) == next(networks("lab"))
    assert next(networks("lab")) != next(networks("other"))


def test_two_labs_never_share_a_network() -> None:
    taken: list[ipaddress.IPv4Network] = []
    for number in range(256):
        chosen = network.choose(f"lab{number}", taken)
        assert not any(chosen.overlaps(other) for other in taken)
        taken.append(chosen)
    with pytest.raises(UserError, match="no free"):
        network.choose("onemore", taken)


def test_a_network_that_this_machine_routes_elsewhere_is_left_alone() -> None:
    first = next(networks("lab"))
    wide = first.supernet(new_prefix=20)
    assert not network.choose("lab", [wide]).overlaps(wide)


def test_every_iptables_rule_names_the_bridge() -> None:
    assert all("vl-lab" in rule for _, _, rule in network.rules(LAB))


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("pyinfra_vllm.lab.layout.STATE", tmp_path)
    monkeypatch.setattr("pyinfra_vllm.lab.state.STATE", tmp_path)
    return tmp_path


def test_what_is_saved_is_loaded(states: Path) -> None:
    state.save(LAB)
    assert state.load("lab") == LAB
    assert json.loads((states / "lab/lab.json").read_text())["schema"] == 1


def test_a_lab_that_was_never_made_is_named_with_the_command_that_makes_it(states: Path) -> None:
    assert state.load("lab") is None
    with pytest.raises(UserError, match=r"pyinfra-vllm lab --name lab up"):
        state.require("lab")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"network": "nonsense"}', '{"network": null}'])
def test_a_broken_lab_json_says_how_to_get_rid_of_it(states: Path, text: str) -> None:
    (states / "lab").mkdir()
    (states / "lab/lab.json").write_text(text)
    with pytest.raises(UserError, match=r"lab\.json: not readable.*lab --name lab down"):
        state.load("lab")


def test_a_bridge_has_an_address_of_its_own_that_is_no_other_lab_s() -> None:
    first, second = (
        Layout("one", ipaddress.IPv4Network(f"10.213.{octet}.0/24")) for octet in (1, 2)
    )
    assert network.hardware_address(first) == "02:76:0a:d5:01:01"
    assert network.hardware_address(second) != network.hardware_address(first)
