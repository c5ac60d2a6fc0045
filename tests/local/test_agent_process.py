"""The real agent as a process, with a docker that is a script on PATH."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent_archive import archive, archive_digest

_RELEASE = "a" * 64
_REVISION = "b" * 40


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _runs(pid: int) -> bool:
    """Whether the process runs; an ended one that nobody has reaped has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


class Node:
    """A node below a folder: state, run and composed roots, a docker, a snapshot."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.docker = root / "docker"
        (self.docker / "containers").mkdir(parents=True)
        (self.docker / "image").touch()
        self.port = _free_port()
        bin_folder = root / "bin"
        bin_folder.mkdir()
        script = (Path(__file__).parent / "fake_docker.py").read_text()
        (bin_folder / "docker").write_text(script)
        (bin_folder / "docker").chmod(0o755)
        self.pyz = root / "agent.pyz"
        self.pyz.write_bytes(archive())
        self.environ = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            paths.ROOT_VARIABLE: str(root),
            "FAKE_DOCKER": str(self.docker),
            "FAKE_PORT": str(self.port),
        }
        self.agents: list[subprocess.Popen[bytes]] = []
        self.journal = root / "journal"
        self._lay_model()

    def _lay_model(self) -> None:
        hub = self.root / "hub" / "models--a--b"
        self.snapshot = hub / "snapshots" / _REVISION
        self.snapshot.mkdir(parents=True)
        (hub / "blobs").mkdir()
        (hub / "blobs" / "1").write_text("{}")
        (self.snapshot / "config.json").symlink_to("../../blobs/1")
        self.local = self.root / "local" / "model.safetensors"
        self.local.parent.mkdir()
        self.local.write_bytes(b"weights")
        self.composed = self.root / paths.composed("main", _RELEASE).lstrip("/")

    def lay_release(self, rank: int = 0, **changes: Any) -> None:
        """Write the release and move ``current`` to it."""
        folder = self.root / paths.releases("main").lstrip("/") / _RELEASE
        folder.mkdir(parents=True)
        document = {
            "schema": 1,
            "gang": "main",
            "release": _RELEASE,
            "recipe": "tiny",
            "rank": rank,
            "size": 2,
            "image": {"build": "c" * 64, "tag": "tiny:local"},
            "container": "vllm-main",
            "labels": {paths.LABEL_GANG: "main", paths.LABEL_RELEASE: _RELEASE},
            "options": ["--network", "host"],
            "mounts": [
                {
                    "source": str(self.composed),
                    "target": "/model",
                    "read_only": True,
                    "create": False,
                }
            ],
            "environ": {"VLLM_HOST_IP": "127.0.0.1"},
            "argv": ["vllm", "serve", "/model", *(["--headless"] if rank else [])],
            "composed": {"directory": str(self.composed)},
            "api": {"address": "127.0.0.1", "port": self.port, "model": "tiny"},
            "start_timeout": 60,
        }
        (folder / paths.LAUNCH).write_text(json.dumps(document | changes))
        manifest = {
            "schema": 1,
            "directory": str(self.composed),
            "sources": [{"repo": "a/b", "revision": _REVISION, "snapshot": str(self.snapshot)}],
            "local_files": [{"host": str(self.local), "name": "model.safetensors"}],
        }
        (folder / paths.MANIFEST).write_text(json.dumps(manifest))
        current = self.root / paths.current("main").lstrip("/")
        current.symlink_to(f"releases/{_RELEASE}")

    def start(self, **environ: str) -> subprocess.Popen[bytes]:
        with self.journal.open("ab") as journal:
            agent = subprocess.Popen(
                [sys.executable, "-I", str(self.pyz), "run", "main"],
                env=self.environ | environ,
                stdout=journal,
                stderr=journal,
            )
        self.agents.append(agent)
        return agent

    def status(self) -> dict[str, Any]:
        file = self.root / paths.status_file("main").lstrip("/")
        if not file.exists():
            return {"phase": None}
        document: dict[str, Any] = json.loads(file.read_text())
        return document

    def wait(self, holds: Callable[[dict[str, Any]], bool], seconds: float = 15) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.status()
            if holds(status):
                return status
            time.sleep(0.05)
        pytest.fail(f"{self.status()}\n{self.journal.read_text()}")

    def wait_phase(self, phase: str, of: subprocess.Popen[bytes]) -> dict[str, Any]:
        return self.wait(lambda status: status["phase"] == phase and status["pid"] == of.pid)

    def docker_calls(self, *first: str) -> list[list[str]]:
        lines = (self.docker / "log").read_text().splitlines()
        calls: list[list[str]] = [json.loads(line) for line in lines]
        return [call for call in calls if call[: len(first)] == list(first)]

    def containers(self) -> list[str]:
        return [file.name for file in (self.docker / "containers").iterdir()]

    def end(self) -> None:
        for agent in self.agents:
            agent.kill()
            agent.wait()
        for file in (self.docker / "containers").iterdir():
            pid = json.loads(file.read_text())["pid"]
            try:
                if "docker" in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                continue


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
    assert (status["release"], status["rank"]) == (_RELEASE, 0)
    assert status["engine_started"] and status["last_failure"] is None
    (completion,) = node.docker_calls("completion")
    assert completion[1]["model"] == "tiny"  # type: ignore[index]
    assert (node.composed / "model.safetensors").samefile(node.local)
    assert "the engine's first line" in node.journal.read_text()
    assert "starts: docker run --name vllm-main" in node.journal.read_text()


def test_worker_stays_starting_because_it_cannot_know(node: Node) -> None:
    node.lay_release(rank=1)
    agent = node.start()
    node.wait_phase("starting", agent)
    time.sleep(2)
    assert node.status()["phase"] == "starting"
    assert not node.docker_calls("completion")


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
    assert status["last_failure"]["release"] == _RELEASE
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
    assert _runs(old)
    node.wait_phase("serving", node.start())
    assert not _runs(old)
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
    assert "launch.json" in status["detail"] and "run the deploy" in status["detail"]
    (node.docker / "down").touch()
    node.lay_release()
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
    assert f"hf download a/b --revision {_REVISION}" in status["detail"]


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
        *["run", "--name", "vllm-main"],
        *["--label", "pyinfra-vllm.gang=main", "--label", f"pyinfra-vllm.release={_RELEASE}"],
        *["--log-driver", "none", "--network", "host"],
        *["--mount", f"type=bind,source={node.composed},target=/model,readonly"],
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
