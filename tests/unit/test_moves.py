"""What becomes of each node when the inventory gives ranks to others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.moves import Move, move, refusal
from pyinfra_vllm.node.state import NodeState
from unit.gangs import sparks

GANG = sparks(4)


def order(*numbers: int) -> Gang:
    """The sparks in another order of ranks."""
    nodes = [replace(sparks(8).nodes[n], rank=rank) for rank, n in enumerate(numbers)]
    return Gang("main", tuple(nodes))


def state(rank: int | None, gang: Gang = GANG) -> NodeState:
    """A node that was of this rank in a gang; None: it is new."""
    text = json.dumps({"rank": rank, "addresses": list(gang.addresses)})
    found: dict[str, Any] = {"exists": rank is not None, "type": "file", "text": text}
    return NodeState.model_validate(
        {"schema": 1, "files": {"ok": True, "value": {paths.members("main"): found}}}
    )


def states(gang: Gang = GANG) -> dict[str, NodeState]:
    return {node.name: state(node.rank, gang) for node in gang.nodes}


def test_nobody_moves_in_the_same_order_or_for_a_smaller_recipe() -> None:
    assert move(GANG, states()) is None
    assert move(sparks(2), states()) is None
    assert move(GANG, states(sparks(2))) is None
    assert move(GANG, {node.name: state(None) for node in GANG.nodes}) is None


def test_a_head_that_becomes_a_worker_is_the_old_head() -> None:
    found = move(order(1, 2, 0, 3), states())
    assert found is not None
    assert found.ranks == {"spark-1": (1, 0), "spark-2": (2, 1), "spark-0": (0, 2)}
    assert found.old_heads == ("spark-0",)
    assert found.stale == ("spark-1", "spark-2", "spark-0", "spark-3")
    assert found.gone == ""
    assert "rank of spark-0 changes from 0 to 2" in found.lines


def test_a_move_that_was_cut_is_the_same_for_those_who_are_left() -> None:
    gang = order(1, 2, 0, 3)
    half = {**states(), "spark-0": state(2, gang), "spark-1": state(0, gang)}
    found = move(gang, half)
    assert found is not None
    assert found.old_heads == () and found.gone == "" and found.stale == ("spark-2", "spark-3")


def gone() -> Move:
    """spark-4 takes the place of spark-0, the head."""
    found = move(order(4, 1, 2, 3), {**states(), "spark-4": state(None)})
    assert found is not None and found.gone == "192.168.100.10"
    return found


def test_a_head_that_is_no_member_any_more_must_be_reached_or_dead() -> None:
    gang, names = order(4, 1, 2, 3), {"192.168.100.10": "spark-0"}
    why = refusal(gone(), gang, set(), names, {"spark-1"})
    assert why is not None
    assert "it was spark-0 (192.168.100.10), which can't be reached" in why
    assert "--data dead=spark-0" in why
    assert refusal(gone(), gang, {"spark-0"}, names, {"spark-1"}) is None
    assert refusal(gone(), gang, {"192.168.100.10"}, {}, {"spark-1"}) is None
    assert refusal(gone(), gang, set(), names, {"spark-0"}) is None, "it will be stopped"


def test_who_answers_is_not_dead() -> None:
    why = refusal(gone(), order(4, 1, 2, 3), {"spark-0"}, {}, {"spark-0"})
    assert why is not None and "it answers, and is no dead node" in why
