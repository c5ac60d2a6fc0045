"""When a rank's connections want to be looked at again."""

from __future__ import annotations

import selectors

from pyinfra_vllm.agent.lines import REDIAL, Lines
from pyinfra_vllm.agent.members import Members


def lines(rank: int) -> Lines:
    members = Members(rank, ("127.0.0.1", "127.0.0.2"), 29503, "")
    return Lines(selectors.DefaultSelector(), members, b"s" * 32, print)


def test_a_worker_dials_soon_again_and_nobody_else_wakes_up_for_it() -> None:
    """Between two starts of a gang every second of waiting is one without service."""
    assert REDIAL < 0.5
    assert lines(1).seconds("assembling", 1.0) == REDIAL
    assert lines(1).seconds("running", 1.0) == lines(0).seconds("assembling", 1.0) == 1.0
