"""A node below a folder, on which the real agent runs with a docker that is a script."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import pace, paths
from pyinfra_vllm.agent_archive import archive

RELEASE = "a" * 64
REVISION = "b" * 40


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def runs(pid: int) -> bool:
    """Whether the process runs; an ended one that nobody has reaped has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def _mount(source: Path, target: Path | None = None) -> dict[str, Any]:
    return {
        "source": str(source),
        "target": str(target or source),
        "read_only": True,
        "create": False,
    }


class Node:
    """A node below a folder: state, run and composed roots, a docker, a snapshot."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.docker = root / "docker"
        (self.docker / "containers").mkdir(parents=True)
        (self.docker / "image").touch()
        self.port = free_port()
        bin_folder = root / "bin"
        bin_folder.mkdir()
        script = (Path(__file__).parent / "local" / "fake_docker.py").read_text()
        (bin_folder / "docker").write_text(script)
        (bin_folder / "docker").chmod(0o755)
        self.pyz = root / "agent.pyz"
        self.pyz.write_bytes(archive())
        self.environ = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            paths.ROOT_VARIABLE: str(root),
            pace.VARIABLE: "0.1",
            "FAKE_DOCKER": str(self.docker),
            "FAKE_PORT": str(self.port),
        }
        self.agents: list[subprocess.Popen[bytes]] = []
        self.journal = root / "journal"
        self._lay_model()

    def _lay_model(self) -> None:
        self.hub = self.root / "hub"
        hub = self.hub / "models--a--b"
        self.snapshot = hub / "snapshots" / REVISION
        self.snapshot.mkdir(parents=True)
        (hub / "blobs").mkdir()
        (hub / "blobs" / "1").write_text("{}")
        (self.snapshot / "config.json").symlink_to("../../blobs/1")
        self.local = self.root / "local" / "model.safetensors"
        self.local.parent.mkdir()
        self.local.write_bytes(b"weights")
        self.composed = self.root / paths.composed("main", RELEASE).lstrip("/")

    def lay_gang(self, rank: int = 0, addresses: tuple[str, ...] = ("",), port: int = 0) -> None:
        """Say who belongs to the gang, and give the node its secret."""
        root = self.root / paths.gang_root("main").lstrip("/")
        root.mkdir(parents=True, exist_ok=True)
        document = {
            "schema": 1,
            "gang": "main",
            "rank": rank,
            "addresses": addresses,
            "port": port,
            "alert": f'echo "$PYINFRA_VLLM_MESSAGE" >> {self.root}/alerts',
        }
        (root / "gang.json").write_text(json.dumps(document))
        (root / "secret").write_bytes(b"s" * 32)
        (root / "secret").chmod(0o600)

    def wish(self, release: str = RELEASE, switch: int = 1) -> None:
        """Write ``wanted.json`` as a deploy does: by rename."""
        path = self.root / paths.wanted("main").lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name("new")
        fresh.write_text(json.dumps({"schema": 1, "release": release, "switch": switch}))
        fresh.rename(path)

    def pause(self, reason: str) -> Path:
        marker = self.root / paths.paused("main").lstrip("/")
        marker.write_text(json.dumps({"who": "me", "when": "now", "why": reason}))
        return marker

    def lay_release(self, rank: int = 0, release: str = RELEASE, **changes: Any) -> None:
        """Lay the release of a gang of one; the head's wish names it."""
        if not (self.root / paths.members("main").lstrip("/")).exists():
            self.lay_gang(rank)
        if rank == 0:
            self.wish(release)
        self.lay_files(rank, release, **changes)

    def lay_files(self, rank: int, release: str = RELEASE, **changes: Any) -> None:
        """Only the files of the release."""
        folder = self.root / paths.releases("main").lstrip("/") / release
        folder.mkdir(parents=True)
        composed = self.composed.with_name(release)
        document = {
            "schema": 1,
            "gang": "main",
            "release": release,
            "recipe": "tiny",
            "rank": rank,
            "size": 1,
            "image": {"build": "c" * 64, "tag": "tiny:local"},
            "container": "vllm-main",
            "labels": {paths.LABEL_GANG: "main", paths.LABEL_RELEASE: release},
            "options": ["--network", "host"],
            "mounts": [_mount(self.hub), _mount(composed, self.root / "model")],
            "environ": {"VLLM_HOST_IP": "127.0.0.1"},
            "argv": ["vllm", "serve", "/model", *(["--headless"] if rank else [])],
            "composed": {"directory": str(composed)},
            "api": {"address": "127.0.0.1", "port": self.port, "model": "tiny"},
            "start_timeout": 60,
        }
        (folder / paths.LAUNCH).write_text(json.dumps(document | changes))
        manifest = {
            "schema": 1,
            "directory": str(composed),
            "sources": [{"repo": "a/b", "revision": REVISION, "snapshot": str(self.snapshot)}],
            "local_files": [{"host": str(self.local), "name": "model.safetensors"}],
        }
        (folder / paths.MANIFEST).write_text(json.dumps(manifest))

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

    def engine(self) -> int:
        """Pid of the engine."""
        (file,) = (self.docker / "containers").iterdir()
        return int(json.loads(file.read_text())["pid"])

    def remove_containers(self) -> None:
        """What ExecStopPost of the unit does."""
        command = [sys.executable, "-I", str(self.pyz), "remove", "main"]
        subprocess.run(command, env=self.environ, stdout=subprocess.DEVNULL, check=False)

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
