"""Ten thousand hostile messages to the head's agent, from the node of a member, while it serves."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyinfra_vllm.lab import ssh

from ..stub.gang import UNIT, Gang
from .matrix import serving

pytestmark = pytest.mark.lab

_SCRIPT = (Path(__file__).parents[2] / "stranger.py").read_text()


def test_ten_thousand_hostile_messages_change_nothing_and_cost_nothing(gang: Gang) -> None:
    text, before = serving(gang)
    pid = gang.ask(0, f"echo {gang.main_pid(UNIT)}")
    _send(gang, 1000)
    memory, files = _taken(gang, pid)
    answers = 0
    with ThreadPoolExecutor() as pool:
        storm = pool.submit(_send, gang, 10_000)
        while not storm.done():
            assert gang.complete() == text
            answers += 1
            time.sleep(0.1)
    time.sleep(30 * gang.pace + 1)
    more, files_after = _taken(gang, pid)
    print(f"\n{storm.result()} messages and connections, {answers} answers meanwhile;")
    print(f"the agent: {memory} -> {more} KiB, {files} -> {files_after} open files")
    assert gang.status()["start"] == before
    assert gang.ask(0, f"echo {gang.main_pid(UNIT)}") == pid
    assert files_after == files
    assert more - memory < 1024
    assert answers


def _send(gang: Gang, messages: int) -> str:
    node, head = gang.layout.machines[1], gang.layout.machines[0]
    port = json.loads(gang.ask(0, f"cat {_GANG}"))["port"]
    return ssh.ask(
        gang.layout, node, f"python3 - {node.address} {head.address} {port} 1 {messages}", _SCRIPT
    ).strip()


_GANG = "/var/lib/pyinfra-vllm/main/gang.json"


def _taken(gang: Gang, pid: str) -> tuple[int, int]:
    """Memory in KiB and open files of a process of the head."""
    ask = f"awk '/VmRSS/ {{print $2}}' /proc/{pid}/status; ls /proc/{pid}/fd | wc -l"
    memory, files = gang.ask(0, ask).split()
    return int(memory), int(files)
