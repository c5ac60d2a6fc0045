"""Which host is in which gang, and which recipe is whose."""

from __future__ import annotations

from typing import Any

import pytest

from pyinfra_vllm import gangs
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.gangs import Members


def pairs(**extra: Any) -> dict[str, dict[str, Any]]:
    """Two gangs of two nodes each, with the same fabric addresses on cables of their own."""
    return {
        f"{gang}-{rank}": {
            "vllm_gang": gang,
            "vllm_rank": rank,
            "vllm_fabric_address": f"192.168.100.{10 + rank}",
            "vllm_hf_cache": "/hub",
            "ssh_hostname": f"{gang}{rank}.example",
            **extra,
        }
        for gang in ("left", "right")
        for rank in (0, 1)
    }


def members(**extra: Any) -> Members:
    return gangs.read(pairs(**extra))


def test_each_gang_has_its_own_ranks_and_addresses() -> None:
    known = members()
    assert known.names == ("left", "right")
    assert [node.name for node in known.gang("right", 2).nodes] == ["right-0", "right-1"]
    assert known.gang("left", 2).addresses == known.gang("right", 2).addresses


def test_one_recipe_is_for_all_and_pairs_are_for_each() -> None:
    assert members().recipe("left") is None
    assert members(recipe="r37").recipe("left") == "r37"
    assert members(recipe="./a/recipe.toml").recipe("left") == "./a/recipe.toml"
    both = members(recipe="left:r36,right:tiny-2x")
    assert (both.recipe("left"), both.recipe("right")) == ("r36", "tiny-2x")
    assert members(recipe="right:r36").recipe("left") is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("lefd:r37", "the inventory has no gang lefd; did you mean left"),
        ("left:r37,right", "expected each gang once, as GANG:RECIPE,GANG:RECIPE"),
        ("left:r37,left:r36", "expected each gang once"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(value: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        members(recipe=value).recipe("left")


def test_group_data_gives_each_gang_its_recipe_and_a_gang_has_one() -> None:
    hosts = pairs(recipe="r37")
    hosts["right-0"]["recipe"] = hosts["right-1"]["recipe"] = "r36"
    assert gangs.read(hosts).recipe("right") == "r36"
    hosts["right-1"]["recipe"] = "r37"
    with pytest.raises(UserError, match="recipe differs between its nodes: right-0 has r36"):
        gangs.read(hosts).recipe("right")


def test_a_machine_in_two_gangs_is_refused() -> None:
    hosts = pairs()
    hosts["right-1"]["ssh_hostname"] = "left0.example"
    with pytest.raises(UserError, match="right-1: it is the same machine as left-0"):
        gangs.read(hosts).gang("left", 2)


def test_hosts_without_a_word_of_ours_and_builders_are_no_nodes() -> None:
    hosts = pairs(vllm_image_source="builder:box")
    hosts["box"] = {"vllm_fabric_address": "192.168.100.99"}
    hosts["printer"] = {"ssh_user": "root", "vllm_gang": "main"}
    known = gangs.read(hosts)
    assert known.builders == {"box"}
    assert set(known.nodes) == set(pairs())


def test_the_lowest_rank_keeps_the_lock() -> None:
    assert members().head(["left-1", "left-0"]) == "left-0"
    assert gangs.read({"a": {}, "b": {}}).head(["a", "b"]) == "a"
