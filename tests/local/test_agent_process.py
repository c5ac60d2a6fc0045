"""The real agent as a process, with a docker that is a script on PATH."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_node import RELEASE, REVISION, Node, runs
from pyinfra_vllm.agent_archive import archive_digest


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.end()


def test_head_comes_to_serving_after_a_real_completion(node: Node) -> None:
    node.lay_release()
    agent = node.start()
    status = node.wait_phase("serving", agent)
    assert status["agent"] == archive_digest()
    assert (status["release"], status["rank"]) == (RELEASE, 0)
    assert status["engine_started"] and status["last_failure"] is None
    (completion,) = node.docker_calls("completion")
    assert completion[1]["model"] == "tiny"  # type: ignore[index]
    assert (node.composed / "model.safetensors").samefile(node.local)
    assert "the engine's first line" in node.journal.read_text()
    assert "start 1: docker run --label pyinfra-vllm.start=1" in node.journal.read_text()


@pytest.mark.parametrize("code", [0, 1, 137])
def test_engine_that_exits_with_any_code_fails_the_run(node: Node, code: int) -> None:
    node.lay_release()
    agent = node.start()
    node.wait_phase("serving", agent)
    (node.docker / "exit").write_text(str(code))
    assert agent.wait(15) == 1
    status = node.status()
    assert status["phase"] == "failed"
    assert status["last_failure"]["code"] == code
    assert status["last_failure"]["release"] == RELEASE
    assert f"code {code}" in status["last_failure"]["detail"]
    assert node.containers() == []


def test_failure_is_still_known_to_the_next_run(node: Node) -> None:
    node.lay_release()
    agent = node.start()
    node.wait_phase("serving", agent)
    (node.docker / "exit").write_text("3")
    agent.wait(15)
    status = node.wait_phase("serving", node.start())
    assert status["last_failure"]["code"] == 3


def test_stop_lets_the_engine_end_and_exits_0(node: Node) -> None:
    node.lay_release()
    agent = node.start()
    node.wait_phase("serving", agent)
    agent.terminate()
    assert agent.wait(15) == 0
    assert node.docker_calls("stop") == [["stop", "-t", "30", "vllm-main"]]
    assert node.status()["phase"] == "stopping"
    assert node.containers() == []


def test_stop_right_after_the_start_leaves_no_container(node: Node) -> None:
    node.lay_release()
    agent = node.start(FAKE_START="5")
    node.wait_phase("starting", agent)
    agent.terminate()
    assert agent.wait(15) == 0
    assert node.containers() == []


def test_stop_while_waiting_exits_0_at_once(node: Node) -> None:
    agent = node.start()
    node.wait_phase("waiting", agent)
    agent.terminate()
    assert agent.wait(5) == 0


def test_container_of_an_earlier_start_is_removed_before_the_start(node: Node) -> None:
    node.lay_release()
    first = node.start()
    node.wait_phase("serving", first)
    old = json.loads((node.docker / "containers" / "vllm-main").read_text())["pid"]
    first.kill()
    first.wait()
    assert runs(old)
    node.wait_phase("serving", node.start())
    assert not runs(old)
    assert node.containers() == ["vllm-main"]


def test_container_of_somebody_else_is_left_alone_and_named(node: Node) -> None:
    node.lay_release()
    other = node.docker / "containers" / "vllm-main"
    other.write_text(json.dumps({"pid": 0, "labels": [], "argv": []}))
    status = node.wait_phase("waiting", node.start())
    assert "isn't ours" in status["detail"] and "docker rename" in status["detail"]
    assert node.containers() == ["vllm-main"]
    other.unlink()


def test_what_is_missing_is_waited_for_and_no_failure(node: Node) -> None:
    agent = node.start()
    status = node.wait_phase("waiting", agent)
    assert "gang.json" in status["detail"] and "run the deploy" in status["detail"]
    node.lay_gang()
    node.wait(lambda status: "wanted.json" in status["detail"])
    node.wish()
    node.wait(lambda status: "launch.json" in status["detail"])
    (node.docker / "down").touch()
    node.lay_files(0)
    node.wait(lambda status: "Cannot connect to the Docker daemon" in status["detail"])
    (node.docker / "image").unlink()
    (node.docker / "down").unlink()
    node.wait(lambda status: "no image of build cccccccccccc" in status["detail"])
    (node.docker / "image").touch()
    status = node.wait_phase("serving", agent)
    assert status["last_failure"] is None


def test_missing_snapshot_names_the_command_that_fetches_it(node: Node) -> None:
    node.lay_release()
    node.snapshot.rename(node.snapshot.with_name("other"))
    status = node.wait_phase("waiting", node.start())
    assert f"hf download a/b --revision {REVISION}" in status["detail"]


def test_head_without_a_completion_in_time_fails(node: Node) -> None:
    node.lay_release(start_timeout=2)
    agent = node.start(FAKE_START="60")
    assert agent.wait(20) == 1
    failure = node.status()["last_failure"]
    assert failure["code"] == 124 and "no first completion" in failure["detail"]
    assert node.containers() == []


def test_engine_is_given_the_command_line_of_the_release(node: Node) -> None:
    node.lay_release()
    node.wait_phase("serving", node.start())
    (run,) = node.docker_calls("run")
    assert run == [
        *["run", "--label", "pyinfra-vllm.start=1", "--pull", "never", "--name", "vllm-main"],
        *["--label", "pyinfra-vllm.gang=main", "--label", f"pyinfra-vllm.release={RELEASE}"],
        *["--log-driver", "none", "--network", "host"],
        *["--mount", f"type=bind,source={node.hub},target={node.hub},readonly"],
        *["--mount", f"type=bind,source={node.composed},target={node.root}/model,readonly"],
        *["--env", "VLLM_HOST_IP=127.0.0.1"],
        *["--entrypoint", "vllm", "sha256:1111", "serve", "/model"],
    ]


def test_systemd_is_told_ready_phase_and_life(node: Node) -> None:
    node.lay_release()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        address = str(node.root / "notify")
        systemd.bind(address)
        systemd.settimeout(10)
        node.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="4000000")
        told: list[str] = []
        while "STATUS=serving: first completion answered" not in told:
            told.append(systemd.recv(4096).decode())
    assert told[0] == "READY=1"
    assert "WATCHDOG=1" in told


def test_agent_replaced_on_disk_keeps_running(node: Node) -> None:
    node.lay_release()
    (node.docker / "image").unlink()
    agent = node.start()
    node.wait_phase("waiting", agent)
    fresh = node.pyz.with_suffix(".new")
    fresh.write_bytes(b"no archive")
    fresh.rename(node.pyz)
    (node.docker / "image").touch()
    assert node.wait_phase("serving", agent)["agent"] == archive_digest()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes what a process sees")
def test_what_does_not_open_inside_the_container_ends_the_start(node: Node) -> None:
    node.lay_release()
    (node.docker / "hidden").write_text(str(node.hub))
    assert node.start().wait(15) == 1
    detail = node.status()["last_failure"]["detail"]
    assert f"{node.root}/model/config.json (a link to {node.snapshot}/config.json)" in detail
    (node.docker / "hidden").unlink()
    node.wait_phase("serving", node.start())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes what a process sees")
def test_mount_that_can_be_written_to_ends_the_start(node: Node) -> None:
    node.lay_release()
    (node.docker / "writable").touch()
    assert node.start().wait(15) == 1
    detail = node.status()["last_failure"]["detail"]
    assert f"{node.root}/model can be written to inside the container" in detail


def test_link_that_leads_out_of_the_mounts_is_waited_for_and_named(node: Node) -> None:
    node.lay_release()
    (node.root / "elsewhere").write_text("{}")
    (node.snapshot / "extra.json").symlink_to(node.root / "elsewhere")
    agent = node.start()
    status = node.wait_phase("waiting", agent)
    assert f"the container can't open extra.json (it leads to {node.root}/" in status["detail"]
    assert node.docker_calls("run") == []
    (node.snapshot / "extra.json").unlink()
    node.wait_phase("serving", agent)
