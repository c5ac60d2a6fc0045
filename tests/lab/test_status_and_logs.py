"""``status`` and ``logs`` tell how a gang is, whatever is dead on its nodes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from . import dead
from .healing.matrix import serving
from .stub.gang import HERE, LAB, UNIT, Gang

pytestmark = pytest.mark.lab

PROGRAM = Path(sys.executable).with_name("pyinfra-vllm")
HUNG = 60
"""Seconds after which a command counts as hung; on an idle machine none takes 10."""


Done = subprocess.CompletedProcess[str]


def run(gang: Gang, *words: str) -> Done:
    """A command on the inventory of the lab, which must come to an end."""
    done = subprocess.run(
        [PROGRAM, words[0], LAB, *words[1:]],
        cwd=HERE,
        env={**os.environ, "PYINFRA_VLLM_LAB": gang.layout.name},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=HUNG,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def together(gang: Gang, *commands: str) -> list[Done]:
    """Several commands at the same time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda line: run(gang, *shlex.split(line)), commands))


def document(done: Done) -> dict[str, Any]:
    """The only gang of ``status --json``."""
    (found,) = json.loads(done.stdout)["gangs"]
    return dict(found)


def ranks(done: Done) -> set[int]:
    """Whose lines are shown."""
    return {int(rank) for rank in re.findall(r"^\S+ rank (\d) \| ", done.stdout, re.M)}


def test_a_dead_nas_and_a_hung_docker_are_named_and_hide_nothing_else(gang: Gang) -> None:
    _, before = serving(gang)
    nodes = [machine.name for machine in gang.layout.machines]
    with dead.nas(gang, 1), dead.dockerd(gang, 2):
        looked, shown, lines, planned = together(
            gang, "status --json", "status", "logs --lines 20", "plan stub-4x"
        )
    found, text = document(looked), shown.stdout
    assert [done.returncode for done in (looked, shown, lines, planned)] == [0, 0, 0, 1]
    assert ranks(lines) == {0, 1, 2, 3}
    assert (found["phase"], found["start"], found["recipe"]) == ("serving", before, "stub-4x")
    assert [rank["phase"] for rank in found["ranks"]] == ["serving"] * 4
    assert [rank["container"] for rank in found["ranks"]] == ["running", "running", "?", "running"]
    unread = [rank["unread"] for rank in found["ranks"]]
    assert unread[0] == unread[3] == {}
    assert "the file system of /mnt/nas/hub: no answer in 5 s" in unread[1].values()
    assert set(unread[2].values()) == {"dockerd: no answer in 5 s"}
    assert found["drift_unknown"] and {rank["drift"] for rank in found["ranks"]} == {None}
    assert f"{nodes[2]}: containers can't be read: dockerd: no answer in 5 s" in text
    assert "drift is not known: " in text
    assert "dockerd: no answer in 10 s" in planned.stdout, "never taken for nothing to do"
    assert gang.status()["start"] == before, "looking has harmed nobody"


def test_a_node_that_is_off_and_a_stopped_docker_are_named_and_the_others_told(gang: Gang) -> None:
    serving(gang)
    gang.power_cut(3)
    try:
        with dead.no_dockerd(gang, 2):
            _wait_until_it_waits(gang)
            looked, lines, first = together(
                gang, "status --json", "logs --lines 20", "logs --first-failure"
            )
    finally:
        gang.power_on()
    found, off = document(looked), gang.layout.machines[3].name
    assert [done.returncode for done in (looked, lines, first)] == [1, 1, 1]
    assert found["phase"] == "waiting" and "rank 3" in found["detail"]
    assert found["ranks"][3]["detail"].startswith("Could not connect ")
    assert [rank["reached"] for rank in found["ranks"]] == [True, True, True, False]
    assert found["ranks"][2]["container"] == "?"
    assert "the daemon doesn't run" in str(found["ranks"][2]["unread"])
    assert found["collapse"]["cause"]
    assert f"no answer: {off}" in lines.stderr
    assert ranks(lines) == {0, 1, 2}
    assert " went first" in first.stdout.splitlines()[0]


def _wait_until_it_waits(gang: Gang) -> None:
    end = time.monotonic() + 60
    while gang.status().get("phase") != "waiting":
        assert time.monotonic() < end, gang.status()
        time.sleep(0.2)


def test_logs_show_what_failed_and_take_no_asked_end_for_a_failure(gang: Gang) -> None:
    _, failed = serving(gang)
    began = time.strftime("%Y-%m-%d %H:%M:%S")
    gang.kill_engine(2)
    after = gang.wait_serving(failed, gang.start)["start"]
    gang.ask(0, f"systemctl restart {UNIT}")
    gang.wait_serving(after, gang.start)
    first, whole, two, wrong, never = together(
        gang,
        "logs --first-failure",
        f"logs --since '{began}'",
        "logs --rank 1 --rank 2 -n 3",
        "logs --rank 9",
        "logs --since never",
    )
    assert [done.returncode for done in (first, whole, two, wrong, never)] == [0, 0, 0, 1, 1]
    head = first.stdout.splitlines()[0]
    assert head.startswith(f"start {failed} ended ")
    assert f"; rank 2 ({gang.layout.machines[2].name}) went first" in head
    lines = whole.stdout.splitlines()
    assert ranks(whole) == {0, 1, 2, 3}
    assert _seconds(lines) == sorted(_seconds(lines))
    assert f" rank 0 | start {after}: " in whole.stdout
    assert ranks(two) == {1, 2} and len(two.stdout.splitlines()) == 6
    assert "--rank 9: gang main has no such rank; it has 0, 1, 2, 3" in wrong.stderr
    assert "Failed to parse timestamp: never" in never.stderr


def _seconds(lines: list[str]) -> list[float]:
    """Times of lines since the first, over midnight too."""
    times = []
    for line in lines:
        hours, minutes, seconds = line.partition(" ")[0].split(":")
        times.append(int(hours) * 3600 + int(minutes) * 60 + float(seconds))
    return [(at - times[0] + 1) % 86400 for at in times]
