"""Ranks move: hosts reordered, the head moved, a head that is dead."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engram_checkpoints as checkpoints
from pyinfra_vllm.agent import paths

from .releases.changing import STUB
from .stub.gang import HERE, Gang

pytestmark = pytest.mark.lab

ORDER = str(HERE / "order.py")
HISTORY = paths.history("main")
COPIES = f"{paths.ENGRAM_ROOT}/engram"
ROOT = "/var/lib/pyinfra-vllm/main"
RANK = "docker inspect -f '{{index .Config.Labels \"pyinfra-vllm.rank\"}}' vllm-main"


@pytest.fixture
def moving(gang: Gang, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gang]:
    """The gang in its usual order before and after."""
    monkeypatch.setenv("PYINFRA_VLLM_ORDER", "0,1,2,3")
    gang.deploy("stub-4x")
    yield gang
    gang.power_on()
    gang.deploy("stub-4x")


def heads(gang: Gang) -> list[int]:
    """Machines that would ask for a release."""
    return [n for n in range(4) if gang.look(n, f"ls {ROOT}/wanted.json") != ""]


def history(gang: Gang, machine: int) -> list[dict[str, Any]]:
    """What a node knows as a head."""
    return [json.loads(line) for line in gang.ask(machine, f"cat {HISTORY}").splitlines()]


@pytest.mark.soak
def test_ranks_move_with_the_old_head_stopped_or_known_to_be_dead(
    moving: Gang, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, starts = history(moving, 0), moving.status()["start"]
    monkeypatch.setenv("PYINFRA_VLLM_ORDER", "1,2,0,3")
    moving.apply("recipe.py", "recipe=stub-4x", inventory=ORDER)
    assert moving.complete(machine=1)
    assert [moving.ask(machine, RANK) for machine in (1, 2, 0, 3)] == ["0", "1", "2", "3"]
    assert heads(moving) == [1]
    # The history goes on at the new head, and so do the numbers of starts.
    known = [event for event in history(moving, 1) if event not in before]
    assert len(history(moving, 1)) == len(before) + len(known)
    assert [event["event"] for event in known] == ["moved", "asked", "serving"]
    assert known[0]["from"].endswith("-0") and known[0]["carried"]
    assert known[2]["start"] > starts and known[2]["without"] > 0
    assert json.loads(moving.ask(0, f"cat {ROOT}/gang.json"))["rank"] == 2
    again = moving.apply("recipe.py", "recipe=stub-4x", inventory=ORDER)
    assert "changed     nothing" in again

    monkeypatch.setenv("PYINFRA_VLLM_ORDER", "0,1")
    moving.apply("recipe.py", "recipe=stub-2x", inventory=ORDER)
    assert moving.complete()
    moving.power_cut(0)
    monkeypatch.setenv("PYINFRA_VLLM_ORDER", "2,1")
    refused = moving.fails("recipe.py", "recipe=stub-2x", inventory=ORDER)
    address = moving.layout.machines[0].address
    assert f"it was {address}, which is no host of this inventory" in refused
    assert f"--data dead={address}" in refused
    moving.apply("recipe.py", "recipe=stub-2x", f"dead={address}", inventory=ORDER)
    assert moving.complete(machine=2)
    assert [event for event in history(moving, 2) if event["event"] == "moved"][-1] == {
        **history(moving, 2)[-3], "from": address, "carried": False,
    }  # fmt: skip
    moving.power_on()
    # The old one is there again, and finds nobody.
    assert moving.look(0, "docker ps --quiet") == ""
    assert moving.complete(machine=2)


@pytest.fixture
def engram(moving: Gang, tmp_path: Path) -> Iterator[str]:
    """``recipe=…`` of the stub engine with a model that has Engram tables, copied on every node."""
    hub = moving.layout.nas / "hub"
    checkpoints.lay(hub)
    lines = [f'model = "{checkpoints.REPO}"', "[composed_model]", 'mount = "/model"']
    lines += ["[[composed_model.sources]]", f'repo = "{checkpoints.REPO}"']
    for name in checkpoints.SHARDS[2:]:
        lines += ["[[composed_model.local_files]]", f'host = "{COPIES}/{name}"']
    head, _, rest = STUB.read_text().partition("[env]")
    head = "".join(line for line in head.splitlines(True) if not line.startswith("model ="))
    env = rest.partition("\n#")[0]
    path = tmp_path / "stub-engram-4x" / "recipe.toml"
    path.parent.mkdir()
    path.write_text("\n".join([head, lines[0], f"[env]{env}", *lines[1:]]) + "\n")
    yield f"recipe={path}"
    moving.power_on()
    moving.deploy("stub-4x")
    moving.each(f"rm -rf {COPIES}")
    shutil.rmtree(hub / f"models--{checkpoints.REPO.replace('/', '--')}")


@pytest.mark.soak
def test_a_move_is_refused_where_the_engram_copies_are_another_rank_s(
    moving: Gang, engram: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving.apply("engram.py", engram)
    moving.apply("recipe.py", engram)
    start = moving.wait_serving(-1, 60)["start"]
    monkeypatch.setenv("PYINFRA_VLLM_ORDER", "1,0,2,3")
    refused = moving.fails("recipe.py", engram, inventory=ORDER)
    assert "rows that rank 0 of 4 reads from layers.1.engram.embed.weight" in refused
    assert "it is the copy of rank 1 of 4" in refused and "deploys/engram.py" in refused
    assert moving.status()["start"] == start and moving.complete()
    assert [moving.ask(machine, RANK) for machine in range(4)] == ["0", "1", "2", "3"]
    moving.apply("engram.py", engram, inventory=ORDER)
    moving.apply("recipe.py", engram, inventory=ORDER)
    assert moving.complete(machine=1)
    assert moving.ask(1, RANK) == "0" and heads(moving) == [1]
