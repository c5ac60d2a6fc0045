"""How long a gang would not serve, from what its head has kept of earlier switches."""

from __future__ import annotations

from typing import Any

import pytest

from pyinfra_vllm.node import NodeState
from pyinfra_vllm.outage import expected_outage

NEW, OLD = "a" * 64, "b" * 64


def head(*switches: tuple[str, float | None, float | None], **status: Any) -> NodeState:
    """``switches``: release, seconds of its engine's start, seconds without service."""
    known = [
        {"at": float(number), "release": release, "engine": engine, "without": without}
        for number, (release, engine, without) in enumerate(switches)
    ]
    agent = {"phase": "serving", "since": 140.0, "engine_started": 100.0, "start": 3, **status}
    parts = {"past": {"switches": known}, "agent": {"status": agent}}
    document = {name: {"ok": True, "value": value} for name, value in parts.items()}
    return NodeState.model_validate({"schema": 1, **document})


@pytest.mark.parametrize(
    ("state", "seconds", "source"),
    [
        (head((OLD, 40, 50), (NEW, 60, 75)), 75, "the last switch to this release"),
        (
            head((NEW, 9, 10), (NEW, 60, 70), (OLD, 40, 50), (NEW, 60, 90), (NEW, 60, 80)),
            80,
            "the last 3 switches to this release",
        ),
        (head((OLD, 40, 50), (OLD, 40, 60)), 55, "the last 2 switches to other releases"),
        (head((NEW, 60, None)), 60, "the engine's start in the last switch to this release"),
        (head((NEW, 60, 10_800)), 60, "the engine's start in the last switch to this release"),
        (head((NEW, 60, 75), (NEW, 60, 10_800)), 75, "the last switch to this release"),
        (head((NEW, None, None), (OLD, 40, 50)), 50, "the last switch to other releases"),
        (head(), 40, "the last start"),
    ],
    ids=["own before others", "the median of three", "others", "the first one", "long paused",
         "long paused once",
         "one without figures", "no switch is known"],
)  # fmt: skip
def test_the_switches_of_this_head_say_what_the_next_one_takes(
    state: NodeState, seconds: float, source: str
) -> None:
    found = expected_outage(state, NEW)
    assert found is not None
    assert (found.seconds, found.source) == (seconds, source)


def test_what_nobody_has_seen_is_not_guessed() -> None:
    assert expected_outage(head(phase="starting"), NEW) is None
    assert expected_outage(NodeState.model_validate({"schema": 1}), NEW) is None
