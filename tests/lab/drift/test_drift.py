"""Every kind of drift is named by the plan, repaired by the apply, and gone in the next plan.

What the apply changes is exactly what the plan said, operation by operation and node by node.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ..stub.gang import HERE, ROOT, UNIT, Gang
from .kinds import QUIET, STALE, STOPPED, Kind

pytestmark = pytest.mark.lab

BIN = Path(sys.executable).parent
WANTED = 'R=$(sed -n \'s/.*"release": "\\(.*\\)",/\\1/p\' /root/wanted)'
"""Shell: ``$R`` is the digest of the release that the gang is to serve."""
Planted = Mapping[str, int]
"""Kind -> the rank that it is planted on."""


def command(gang: Gang, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PYINFRA_VLLM_LAB": gang.layout.name, "PYINFRA_PROGRESS": "off"}
    return subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        cwd=HERE, env={**os.environ, **environ}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def plan(gang: Gang, code: int) -> dict[str, Any]:
    done = command(
        gang, "pyinfra-vllm", "plan", str(ROOT / "inventory/lab.py"), "stub-4x", "--json"
    )
    found = dict(json.loads(done.stdout)["gangs"][0])
    why = json.dumps({**found, "findings": []}, indent=1)[:4000] + done.stderr[-2000:]
    assert done.returncode == code, why
    return found


def apply(gang: Gang) -> dict[str, set[str]]:
    """Operation -> nodes that it has changed, but for the lock, which is given back."""
    files = (str(ROOT / "inventory/lab.py"), str(ROOT / "deploys/recipe.py"))
    done = command(gang, "pyinfra", "-y", "--json", *files, "--data", "recipe=stub-4x")
    assert done.returncode == 0, done.stderr[-4000:]
    results = json.loads(done.stdout)["results"]["operations"]
    return {
        str(one["names"][0]).partition(" | ")[2]: set(one["success"])
        for one in results
        if one["success"] and "lock" not in one["names"][0]
    }


def planned(found: Mapping[str, Any]) -> dict[str, set[str]]:
    nodes: dict[str, set[str]] = {}
    for change in found["changes"]:
        nodes.setdefault(change["operation"], set()).update(change["nodes"])
    return nodes


def names(found: Mapping[str, Any], kind: Kind, node: str) -> bool:
    """Whether the plan says of the node what the kind is called by."""
    return any(
        kind.says in line["text"]
        for change in found["changes"]
        if change["key"] == kind.operation and node in change["nodes"]
        for line in change["lines"]
    )


def plant(gang: Gang, kinds: Mapping[str, Kind], where: Planted) -> None:
    for rank in sorted(set(where.values())):
        scripts = [f"( {kinds[name].plant} )" for name in kinds if where.get(name) == rank]
        gang.ask(rank, f"{WANTED}; " + " && ".join(scripts))


def repair(gang: Gang, kinds: Mapping[str, Kind], where: Planted) -> dict[str, Any]:
    """Plan, apply, and plan again; the first plan."""
    found = plan(gang, 2)
    unnamed = {
        name: rank
        for name, rank in where.items()
        if not names(found, kinds[name], gang.layout.machines[rank].name)
    }
    assert not unnamed, json.dumps(found["changes"], indent=1)[:6000]
    assert apply(gang) == planned(found)
    assert plan(gang, 0)["changes"] == []
    return found


def rounds(kinds: Mapping[str, Kind], ranks: tuple[int, ...]) -> Iterator[dict[str, int]]:
    """All kinds in few rounds: of one thing, each kind on another node."""
    left = dict(kinds)
    while left:
        taken: dict[tuple[str, int], str] = {}
        for name, kind in left.items():
            rank = next((rank for rank in ranks if (kind.of, rank) not in taken), None)
            if rank is not None:
                taken[kind.of, rank] = name
        yield {name: rank for (_, rank), name in taken.items()}
        left = {name: kind for name, kind in left.items() if name not in taken.values()}


@pytest.fixture
def serving(gang: Gang) -> Gang:
    """The gang serves, with nothing to repair, and every node knows which release is wanted."""
    gang.each(f"systemctl start {UNIT}")
    gang.wait_serving(0, 90)
    gang.forget_starts()
    if planned(plan_or_changes(gang)):
        apply(gang)
    text = gang.ask(0, "cat /var/lib/pyinfra-vllm/main/wanted.json")
    gang.each(f"cat > /root/wanted <<'END'\n{text}\nEND")
    return gang


def plan_or_changes(gang: Gang) -> dict[str, Any]:
    done = command(
        gang, "pyinfra-vllm", "plan", str(ROOT / "inventory/lab.py"), "stub-4x", "--json"
    )
    return dict(json.loads(done.stdout)["gangs"][0])


def test_there_are_forty_kinds() -> None:
    assert len({**QUIET, **STALE, **STOPPED}) >= 40


@pytest.mark.parametrize("number", range(2))
def test_drift_is_repaired_while_the_gang_serves_on(serving: Gang, number: int) -> None:
    every = list(rounds(QUIET, (1, 2, 3)))
    assert len(every) == 2, "each round is a test"
    before = serving.status()["start"]
    where = every[number]
    plant(serving, QUIET, where)
    found = repair(serving, QUIET, where)
    assert not [change for change in found["changes"] if change["consequence"] == "restart"]
    assert serving.status()["start"] == before, "what needs no restart causes none"
    assert serving.complete()


def test_an_engine_of_another_time_is_seen_after_its_files_are_mended(serving: Gang) -> None:
    where = {name: index % 4 for index, name in enumerate(STALE)}
    kept = "/var/lib/pyinfra-vllm/main/releases/$R/launch.json"
    serving.each(f"{WANTED}; cp -p {kept} /root/launch.json")
    plant(serving, STALE, where)
    before = serving.status()["start"]
    serving.kill_engine(2)
    serving.wait_serving(before, 90)
    serving.each(f"{WANTED}; cp -p /root/launch.json {kept}; rm /root/launch.json")
    started = serving.status()["start"]
    found = repair(serving, STALE, dict.fromkeys(STALE, 0))
    assert {change["key"] for change in found["changes"]} >= {"gang.started", "ready.ready"}
    assert not [change for change in found["changes"] if change["key"] == "release.staged"]
    assert serving.wait_serving(started, 90)["start"] == started + 1


def test_a_gang_that_somebody_stopped_or_sent_elsewhere_serves_again(serving: Gang) -> None:
    plant(serving, STOPPED, {"unit stopped": 2, "nothing wanted": 0})
    time.sleep(2)
    repair(serving, STOPPED, {"unit stopped": 2, "nothing wanted": 0})
    assert serving.complete()


def test_an_apply_does_what_the_plan_said_from_any_wrong_state(serving: Gang) -> None:
    seed = int(os.environ.get("PYINFRA_VLLM_SEED", str(time.time_ns() % 1_000_000)))
    print(f"\nPYINFRA_VLLM_SEED={seed}")
    chance = random.Random(seed)
    for _ in range(2):
        where: dict[str, int] = {}
        taken: set[tuple[str, int]] = set()
        for name in chance.sample(sorted(QUIET), 12):
            rank = chance.choice((1, 2, 3))
            if (QUIET[name].of, rank) not in taken:
                taken.add((QUIET[name].of, rank))
                where[name] = rank
        print(where)
        plant(serving, QUIET, where)
        repair(serving, QUIET, where)


@pytest.mark.parametrize("plans", [5, pytest.param(50, marks=pytest.mark.soak)])
def test_plans_in_a_row_of_a_gang_under_load_find_nothing(serving: Gang, plans: int) -> None:
    busy = subprocess.Popen(
        [sys.executable, "-c", _LOAD, serving.layout.machines[0].address], cwd=ROOT
    )
    try:
        for _ in range(plans):
            plan(serving, 0)
        assert busy.poll() is None
    finally:
        busy.terminate()
        busy.wait()


_LOAD = """
import json, sys, time, urllib.request
body = json.dumps({"model": "tiny", "prompt": "x", "max_tokens": 16}).encode()
while True:
    request = urllib.request.Request(f"http://{sys.argv[1]}:8000/v1/completions", body,
                                     {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=60).read()
    time.sleep(0.05)
"""
"""Request after request, with what is left of the processors for those who look."""
