"""Pause and resume, by their deploys."""

from __future__ import annotations

import re
import time

import pytest

from ..stub.gang import UNIT, Gang
from ..test_status_and_logs import document, run

pytestmark = pytest.mark.lab


def test_pause_outlives_a_reboot_is_no_drift_and_ends_with_resume(gang: Gang) -> None:
    gang.each(f"systemctl start {UNIT}")
    before = int(gang.wait_serving(0, 60)["start"])
    text = gang.complete()
    try:
        gang.apply("pause.py", "why=new cables")
        _wait_paused(gang)
        assert "new cables" in gang.status()["detail"] and "root@" in gang.status()["detail"]
        assert gang.look(1, "docker ps -q") == ""
        looked = document(run(gang, "status", "--json"))
        assert looked["phase"] == "paused" and "new cables" in looked["paused"]
        assert [rank["drift"] for rank in looked["ranks"]] == [False] * 4, "a pause is no drift"
        gang.reboot(0)
        _wait_paused(gang)
        deployed = gang.deploy("stub-4x")
        assert re.search(r"Grand total +(\d+) +- +- +\1 ", deployed)
        (last,) = re.findall(r"gang main: .*", deployed)
        assert "new cables; deploys/resume.py starts it" in last and "http" not in last
        assert gang.status()["phase"] == "paused"
        gang.apply("resume.py")
    finally:
        gang.ask(0, "rm -f /var/lib/pyinfra-vllm/main/paused")
    assert gang.wait_serving(before, 60)["start"] == before + 1
    assert gang.complete() == text
    table = run(gang, "history").stdout.splitlines()
    assert re.search(r" resume .*root@.* serving ", f"{table[-1]} "), table


def _wait_paused(gang: Gang) -> None:
    end = time.monotonic() + 60
    while gang.status().get("phase") != "paused":
        assert time.monotonic() < end, gang.status()
        time.sleep(0.2)
