"""How a gang stands when a deploy has ended: from the last look at its head."""

from __future__ import annotations

from typing import Any

import pytest

from pyinfra_vllm.node import NodeState
from pyinfra_vllm.release import release_of
from pyinfra_vllm.standing import standing
from unit import gangs
from unit.test_starts import state

RELEASE = release_of(gangs.content_of("tiny-cpu-4x"))
PAUSED = "paused by me@here at 02:14: new cables"
WAITS = "spark-2 is not connected"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ""),
        (
            {"phase": "paused", "detail": PAUSED},
            f"{PAUSED}; deploys/resume.py starts it",
        ),
        ({"phase": "waiting", "detail": WAITS}, f"not serving: waiting: {WAITS}"),
        ({"phase": "preparing"}, "not serving: preparing"),
        ({"release": "c" * 64}, "cccccccccccc serves"),
        ({"pid": 1}, "not serving yet: the head's agent has just been started"),
    ],
)
def test_what_the_agent_says_is_told(status: dict[str, Any], words: str) -> None:
    assert standing(RELEASE.digest, state(RELEASE, 0, status=status)) == words


def test_a_unit_that_is_stopped_and_a_node_that_was_not_read_are_told() -> None:
    stopped = state(RELEASE, 0, unit={"active": "failed"})
    assert standing(RELEASE.digest, stopped) == "not serving: its unit is failed on the head"
    assert standing(RELEASE.digest, NodeState()).startswith("not known whether it serves: ")
