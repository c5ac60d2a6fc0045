"""When a gang serves a release, and when a deploy must act: from the states of its nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import last_failures, restart_reasons, serves
from unit import gangs

PID = 4711


def state(
    release: Release,
    rank: int,
    *,
    unit: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    wanted: str | None = None,
) -> NodeState:
    """A node of a gang that serves, but for what is said."""
    says = {
        "pid": PID,
        "gang": "main",
        "release": release.digest,
        "rank": rank,
        "phase": "serving" if rank == 0 else "starting",
    }
    runs = {
        "load": "loaded",
        "active": "active",
        "sub": "running",
        "enabled": "enabled",
        "path": "",
        "main_pid": PID,
    }
    text = json.dumps({"release": wanted or release.digest, "switch": 1})
    file = {"exists": True, "type": "file", "text": text, "mode": "0644", "owner": "root"}
    absent = {"exists": False, "type": "missing"}
    values = {
        "unit": runs | (unit or {}),
        "agent": {"status": says | (status or {})},
        "files": {paths.wanted("main"): file, paths.paused("main"): absent},
    }
    parts = {name: {"ok": True, "value": value} for name, value in values.items()}
    return NodeState.model_validate({"schema": 1, **parts})


def states(release: Release, broken: int = -1, **keys: Any) -> dict[str, NodeState]:
    return {
        node.name: state(release, node.rank, **(keys if node.rank == broken else {}))
        for node in release.content.gang.nodes
    }


def test_a_gang_whose_head_has_answered_serves() -> None:
    release = gangs.release()
    assert restart_reasons(release, states(release)) == {}
    assert serves(release, states(release))


@pytest.mark.parametrize("phase", ["preparing", "waiting", "starting", "stopping"])
def test_a_gang_on_its_way_is_left_alone_but_does_not_serve(phase: str) -> None:
    release = gangs.release()
    found = states(release, 0, status={"phase": phase})
    assert restart_reasons(release, found) == {}
    assert not serves(release, found)


def test_a_status_that_another_run_of_the_agent_has_left_is_not_believed() -> None:
    release = gangs.release()
    assert not serves(release, states(release, 0, unit={"main_pid": PID + 1}))
    assert not serves(release, states(release, 0, status={"release": "f" * 64}))


@pytest.mark.parametrize("active", ["inactive", "failed", "deactivating"])
@pytest.mark.parametrize("rank", [0, 3])
def test_a_unit_that_does_not_run_is_a_reason_of_its_node(rank: int, active: str) -> None:
    release = gangs.release()
    found = states(release, rank, unit={"active": active, "main_pid": 0})
    assert restart_reasons(release, found) == {f"spark-{rank}": f"the unit is {active}"}
    assert not serves(release, found)


def test_another_wanted_release_is_a_reason_of_the_head() -> None:
    release = gangs.release()
    found = states(release, 0, wanted="e" * 64)
    assert list(restart_reasons(release, found)) == ["spark-0"]
    assert "e" * 12 in restart_reasons(release, found)["spark-0"]


def test_only_deaths_of_this_release_are_remembered() -> None:
    release = gangs.release()
    died = {"at": 12.5, "code": 1, "release": release.digest}
    found = states(release, 2, status={"last_failure": died})
    assert last_failures(release, found) == {"spark-2": 12.5}
    other = states(release, 2, status={"last_failure": {**died, "release": "f" * 64}})
    assert last_failures(release, other) == {}
