"""The alert command of a real agent: for waiting too long, and for serving again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import Node
from pyinfra_vllm.agent import pace

PACE = 0.01
"""Fifteen minutes of waiting are nine seconds."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "node")
    node.environ[pace.VARIABLE] = str(PACE)
    node.lay_release()
    yield node
    node.end()


def wait_alerts(node: Node, count: int, seconds: float) -> list[str]:
    file = node.root / "alerts"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said = file.read_text().splitlines() if file.exists() else []
        if len(said) >= count:
            return said
        time.sleep(0.05)
    pytest.fail(f"no {count} alerts after {seconds} s: {node.status()}\n{node.journal.read_text()}")


def test_waiting_for_a_quarter_of_an_hour_is_told_once_and_so_is_serving_again(node: Node) -> None:
    away = node.local.with_name("away")
    node.local.rename(away)
    began = time.monotonic()
    agent = node.start()
    (said,) = wait_alerts(node, 1, 60)
    assert time.monotonic() - began > 900 * PACE
    assert said.startswith("waiting: ")
    assert str(node.local) in said
    time.sleep(1)
    assert len(wait_alerts(node, 1, 1)) == 1
    away.rename(node.local)
    node.wait_phase("serving", agent)
    assert wait_alerts(node, 2, 20)[1].startswith("serving: ")


def test_a_wait_that_ends_in_time_is_told_to_nobody(node: Node) -> None:
    away = node.local.with_name("away")
    node.local.rename(away)
    agent = node.start()
    node.wait_phase("waiting", agent)
    away.rename(node.local)
    node.wait_phase("serving", agent)
    time.sleep(1)
    assert not (node.root / "alerts").exists()
