"""``status`` and ``logs`` tell how a gang is, whatever is dead on its nodes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
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


def run(gang: Gang, *words: str) -> subprocess.CompletedProcess[str]:
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


def status(gang: Gang, code: int) -> dict[str, Any]:
    """The only gang of ``status --json``."""
    done = run(gang, "status", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)["gangs"]
    return dict(found)


def logs(gang: Gang, *words: str, code: int = 0) -> list[str]:
    done = run(gang, "logs", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.splitlines()


def ranks(lines: list[str]) -> set[int]:
    return {int(found[1]) for line in lines if (found := re.match(r"\S+ rank (\d) \| ", line))}


def test_a_dead_nas_and_a_hung_docker_are_named_and_hide_nothing_else(gang: Gang) -> None:
    _, before = serving(gang)
    nodes = [machine.name for machine in gang.layout.machines]
    with dead.nas(gang, 1), dead.dockerd(gang, 2):
        found = status(gang, 0)
        text = run(gang, "status").stdout
        assert ranks(logs(gang, "--lines", "20")) == {0, 1, 2, 3}
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
    assert gang.status()["start"] == before, "looking has harmed nobody"


def test_a_node_that_is_off_and_a_stopped_docker_are_named_and_the_others_told(gang: Gang) -> None:
    serving(gang)
    gang.power_cut(3)
    try:
        with dead.no_dockerd(gang, 2):
            _wait_until_it_waits(gang)
            found = status(gang, 1)
            lines = run(gang, "logs", "--lines", "20")
            first = logs(gang, "--first-failure", code=1)
    finally:
        gang.power_on()
    off = gang.layout.machines[3].name
    assert found["phase"] == "waiting" and off in found["detail"]
    assert [rank["reached"] for rank in found["ranks"]] == [True, True, True, False]
    assert found["ranks"][2]["container"] == "?"
    assert "the daemon doesn't run" in str(found["ranks"][2]["unread"])
    assert found["collapse"]["cause"]
    assert lines.returncode == 1 and f"no answer: {off}" in lines.stderr
    assert ranks(lines.stdout.splitlines()) == {0, 1, 2}
    assert " went first" in first[0]


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
    found = logs(gang, "--first-failure")
    assert found[0].startswith(f"start {failed} ended ")
    assert f"; rank 2 ({gang.layout.machines[2].name}) went first" in found[0]
    lines = logs(gang, "--since", began)
    assert ranks(lines) == {0, 1, 2, 3}
    assert _seconds(lines) == sorted(_seconds(lines))
    assert any(f"start {after}: " in line for line in lines)
    assert ranks(logs(gang, "--rank", "1", "--rank", "2", "-n", "3")) == {1, 2}
    assert len(logs(gang, "--rank", "1", "-n", "3")) == 3
    wrong = run(gang, "logs", "--rank", "9")
    assert wrong.returncode == 1
    assert "--rank 9: gang main has no such rank; it has 0, 1, 2, 3" in wrong.stderr


def _seconds(lines: list[str]) -> list[float]:
    """Times of lines since the first, over midnight too."""
    times = []
    for line in lines:
        hours, minutes, seconds = line.partition(" ")[0].split(":")
        times.append(int(hours) * 3600 + int(minutes) * 60 + float(seconds))
    return [(at - times[0] + 1) % 86400 for at in times]
