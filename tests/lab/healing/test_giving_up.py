"""An engine that dies at every start: the head stops trying, says so, and tells a person."""

from __future__ import annotations

import json
import time

import pytest

from ..stub.gang import UNIT, Gang
from .matrix import serving

pytestmark = pytest.mark.lab

_STATE = "/var/lib/pyinfra-vllm/main"
_ALERTS = "/root/alerts"
_DIES = "/var/cache/pyinfra-vllm/*/die"
_COMMAND = f'echo "$PYINFRA_VLLM_EVENT $PYINFRA_VLLM_MESSAGE" >> {_ALERTS}'


def test_five_deaths_end_the_trying_and_resume_tries_again(gang: Gang) -> None:
    text, before = serving(gang)
    gang.ask(0, f"rm -f {_ALERTS}")
    gang.apply("recipe.py", "recipe=stub-4x", f"vllm_alert={_COMMAND}")
    assert gang.status()["start"] == before, "a new alert command restarts nothing"
    gang.ask(2, "for cache in /var/cache/pyinfra-vllm/*/; do touch $cache/die; done")
    try:
        gang.kill_engine(3)
        _wait(gang, "gave up: 5 engines died")
        assert json.loads(gang.ask(0, f"cat {_STATE}/starts.json"))["number"] == before + 5
        assert 'Status: "failed: gave up: 5 engines died before a first completion' in gang.look(
            0, f"systemctl status --no-pager {UNIT}"
        )
        assert gang.ask(0, f"grep -c '^failed failed: gave up' {_ALERTS}") == "1"
        time.sleep(3)
        assert [gang.look(rank, "docker ps -q") for rank in range(4)] == ["", "", "", ""]
        assert '"exit_code": 3' in _evidence(gang, 2)
        assert '"rank": 2' in _evidence(gang, 0)
    finally:
        gang.ask(2, f"rm -f {_DIES}")
    gang.apply("resume.py")
    assert gang.wait_serving(before, gang.start)["start"] == before + 6
    assert gang.complete() == text
    assert gang.ask(0, f"tail -n 1 {_ALERTS}").startswith("serving serving: ")
    gang.deploy("stub-4x")


def _evidence(gang: Gang, rank: int) -> str:
    return gang.ask(rank, f"cat $(ls -t {_STATE}/evidence/start-* | head -n 1)")


def _wait(gang: Gang, what: str) -> None:
    end = time.monotonic() + 120
    while what not in gang.status().get("detail", ""):
        assert time.monotonic() < end, gang.status()
        time.sleep(0.2)
