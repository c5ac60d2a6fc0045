"""How a gang is, from the states of its nodes."""

from __future__ import annotations

import json
from typing import Any

from pyinfra_vllm import gang_status_text
from pyinfra_vllm.gang_status import Status, collapse, status_of
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.node.models import Ended
from pyinfra_vllm.recipe import ReferencePoint
from unit.gangs import sparks

DIGEST = "a" * 64


def state(**parts: Any) -> NodeState:
    about = json.dumps({"recipe": "r37"})
    values: dict[str, Any] = {
        "system": {
            "hostname": "x", "kernel": "6", "architecture": "aarch64", "boot_id": "b", "now": 1.0,
            "uid": 0, "python": "3.12", "memory_total": 4 << 30, "memory_available": 1 << 30,
        },
        "unit": {"load": "loaded", "active": "active", "sub": "running", "enabled": "", "path": ""},
        "containers": [],
        "gang": {
            "current": f"releases/{DIGEST}",
            "releases": {DIGEST: {"exists": True, "type": "directory", "files": {
                "release.json": {"exists": True, "type": "file", "text": about}}}},
        },
        "agent": {"status": {"phase": "serving", "since": 1000.0, "start": 12}},
        **parts,
    }  # fmt: skip
    return NodeState.model_validate(
        {"schema": 1, **{name: {"ok": True, "value": value} for name, value in values.items()}}
    )


def test_a_serving_gang_names_recipe_start_speed_and_reference() -> None:
    metrics = {"running": 2, "waiting": 0, "kv_usage": 0.25, "prompt_rate": 0.0,
               "generation_rate": 45.7, "seconds": 1.0}  # fmt: skip
    states = {"spark-0": state(metrics=metrics), "spark-1": state()}
    point = ReferencePoint(name="r36", decode_tokens_per_second=45.7)
    found = status_of(sparks(2), states, {}, [point])
    assert found.is_well and found.recipe == "r37"
    text = gang_status_text.text(Status(schema=1, gangs=(found,)))
    assert "gang main: serving since" in text and "(start 12)" in text
    assert "requests 2 running, 0 waiting; KV cache 25.0 %" in text
    assert "reference r36: tokens/s 45.7 generated; now 22.9 a request (50 %)" in text


def test_a_node_that_is_down_and_a_part_that_hangs_are_named_and_hide_nothing() -> None:
    document = json.loads(state().model_dump_json(by_alias=True))
    document["containers"] = {"ok": False, "error": "dockerd: no answer in 5 s"}
    states = {"spark-0": NodeState.model_validate(document)}
    found = status_of(sparks(2), states, {"spark-1": "can't be reached"})
    assert not found.is_well
    assert [rank.container for rank in found.ranks] == ["?", ""]
    text = gang_status_text.text(Status(schema=1, gangs=(found,)))
    assert "spark-0: containers can't be read: dockerd: no answer in 5 s" in text
    assert "spark-1: can't be reached" in text


def test_without_its_head_a_gang_is_unknown_and_its_workers_are_shown() -> None:
    found = status_of(sparks(2), {"spark-1": state()}, {})
    assert (found.phase, found.ranks[1].phase) == ("unknown", "serving")
    assert Status(schema=1, gangs=(found,)).exit_code == 1


def test_collapses_of_the_same_cause_in_a_row_are_counted_and_asked_ends_are_none() -> None:
    ended = [
        Ended(start=1, rank=2, text="out of memory"),
        Ended(start=2, rank=1, text="engine exited with code 1, 12 s after its start"),
        Ended(start=3, text="switch to abc"),
        Ended(start=4, rank=1, text="engine exited with code 1, 13 s after its start"),
        Ended(start=5, text="an operator stopped it"),
    ]
    found = collapse(ended)
    assert found is not None
    assert (found.start, found.same) == (4, 2)
    assert collapse([ended[2], ended[4]]) is None


def test_a_unit_that_was_stopped_is_the_phase_whatever_the_agent_said_last() -> None:
    unit = {"load": "loaded", "active": "failed", "sub": "failed", "enabled": "", "path": ""}
    found = status_of(sparks(1), {"spark-0": state(unit=unit)}, {})
    assert found.phase == "unit failed"
