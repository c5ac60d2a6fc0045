"""Three real agents as processes, with dockers that are scripts: they start, break and heal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_gang import ADDRESSES, Trio

OTHER = "d" * 64


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    trio = Trio(tmp_path)
    yield trio
    trio.end()


def test_three_ranks_start_together_and_all_know_that_they_serve(trio: Trio) -> None:
    trio.start()
    assert trio.wait_serving() == 1


def test_nothing_starts_before_all_are_there_and_the_missing_rank_is_named(trio: Trio) -> None:
    trio.start(0, 1)
    trio.wait(lambda all_: "rank 2 (127.0.0.4) is not connected" in all_[0].get("detail", ""))
    trio.wait(lambda all_: "rank 2 (127.0.0.4)" in all_[1].get("detail", ""))
    assert trio.engines() == [False, False, False]
    trio.start(2)
    trio.wait_serving()


@pytest.mark.parametrize("rank", [0, 2])
def test_death_of_any_engine_starts_all_anew(trio: Trio, rank: int) -> None:
    trio.start()
    trio.wait_serving()
    os.kill(trio.engine(rank), signal.SIGKILL)
    trio.wait(lambda all_: not trio.serves(all_))
    assert trio.wait_serving() == 2


@pytest.mark.parametrize("rank", [0, 2])
def test_death_of_any_agent_starts_all_anew(trio: Trio, rank: int) -> None:
    trio.start()
    trio.wait_serving()
    trio.agents[rank].kill()
    trio.agents[rank].wait()
    assert trio.wait_serving() == 2


def test_agent_that_hangs_costs_a_late_beat(trio: Trio) -> None:
    trio.start()
    trio.wait_serving()
    trio.agents[1].send_signal(signal.SIGSTOP)
    trio.wait(lambda all_: "rank 1 (127.0.0.3) is not connected" in all_[0].get("detail", ""))
    trio.agents[1].kill()
    assert trio.wait_serving() == 2


def test_switch_is_one_rename_on_the_head(trio: Trio) -> None:
    trio.start()
    trio.wait_serving()
    for rank, node in enumerate(trio.nodes[:2]):
        node.lay_files(rank, OTHER, size=3)
    trio.nodes[0].wish(OTHER, 2)
    trio.wait(lambda all_: "rank 2 (127.0.0.4) lacks" in all_[0].get("detail", ""))
    assert trio.engines() == [False, False, False]
    trio.nodes[2].lay_files(2, OTHER, size=3)
    assert trio.wait_serving(release=OTHER) == 2
    for node in trio.nodes:
        current = node.root / "var/lib/pyinfra-vllm/main/current"
        assert str(current.readlink()) == f"releases/{OTHER}"


def test_pause_stops_all_and_says_who_and_why_and_resume_starts_again(trio: Trio) -> None:
    trio.start()
    trio.wait_serving()
    marker = trio.nodes[0].pause("new cables")
    trio.wait(lambda all_: all_[0]["phase"] == "paused")
    trio.wait(lambda all_: "paused by me at now: new cables" in all_[1].get("detail", ""))
    assert trio.engines() == [False, False, False]
    assert trio.nodes[0].docker_calls("stop")
    marker.unlink()
    assert trio.wait_serving() == 2


def test_five_deaths_before_a_first_completion_end_the_trying_until_the_next_wish(
    trio: Trio,
) -> None:
    for node in trio.nodes:
        node.environ["FAKE_START"] = "60"
    (trio.nodes[2].docker / "exit_at_start").write_text("3")
    trio.start()
    trio.wait(lambda all_: all_[0]["phase"] == "failed" and "gave up" in all_[0]["detail"], 120)
    alerts = trio.nodes[0].root / "alerts"
    trio.wait(lambda _: alerts.exists() and "failed: gave up" in alerts.read_text())
    time.sleep(1)
    assert trio.engines() == [False, False, False]
    assert len(trio.nodes[0].docker_calls("run")) == 5
    for node in trio.nodes:
        node.environ["FAKE_START"] = "0.2"
        (node.docker / "exit_at_start").unlink(missing_ok=True)
    trio.nodes[0].wish(switch=2)
    for agent in trio.agents.values():
        agent.kill()
    trio.wait_serving()
    trio.wait(lambda _: "serving: " in alerts.read_text())


def test_evidence_of_every_rank_says_who_went_first(trio: Trio) -> None:
    trio.start()
    trio.wait_serving()
    os.kill(trio.engine(1), signal.SIGKILL)
    trio.wait(lambda all_: not trio.serves(all_))
    trio.wait_serving()
    for node in trio.nodes:
        (file,) = (node.root / "var/lib/pyinfra-vllm/main/evidence").iterdir()
        first = json.loads(file.read_text())["first"]
        assert (first["rank"], first["exit_code"]) == (1, 137)


def _taken(pid: int) -> tuple[int, int]:
    """Memory in KiB and open files."""
    (line,) = [line for line in _lines(f"/proc/{pid}/status") if line.startswith("VmRSS")]
    return int(line.split()[1]), len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _lines(path: str | Path) -> list[str]:
    return Path(path).read_text().splitlines()


@pytest.mark.parametrize("address", ["127.0.0.3", "127.0.0.9"], ids=["of a member", "not listed"])
def test_ten_thousand_hostile_messages_change_nothing_and_cost_nothing(
    trio: Trio, address: str
) -> None:
    script = Path(__file__).parents[1] / "stranger.py"
    send = [sys.executable, script, address, ADDRESSES[0], str(trio.port), "1"]
    trio.start()
    trio.wait_serving()
    subprocess.run([*send, "500"], check=True)
    memory, files = _taken(trio.agents[0].pid)
    subprocess.run([*send, "10000"], check=True)
    time.sleep(1)
    assert trio.serves([node.status() for node in trio.nodes])
    assert trio.wait_serving() == 1
    after, files_after = _taken(trio.agents[0].pid)
    assert after - memory < 1024
    assert files_after == files
    refused = [line for line in _lines(trio.nodes[0].journal) if "was refused" in line]
    assert len(refused) <= 2, "a stranger fills the journal"
