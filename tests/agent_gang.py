"""Three nodes below folders whose agents are one gang, over loopback addresses."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_node import RELEASE, Node, free_port, runs
from pyinfra_vllm.agent import pace

ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")


class Trio:
    """``keep_running`` stands for systemd: an agent that ended is started again."""

    def __init__(self, root: Path) -> None:
        self.port = free_port()
        self.nodes = [Node(root / str(rank)) for rank in range(3)]
        self.agents: dict[int, subprocess.Popen[bytes]] = {}
        self.down: set[int] = set()
        for rank, node in enumerate(self.nodes):
            node.lay_gang(rank, ADDRESSES, self.port)
            node.environ[pace.VARIABLE] = "0.3"  # on a busy machine beats may be late by seconds
            node.lay_files(rank, size=3)
        self.nodes[0].wish()

    def start(self, *ranks: int) -> None:
        for rank in ranks or (0, 1, 2):
            self.down.discard(rank)
            self.agents[rank] = self.nodes[rank].start()

    def keep_running(self) -> None:
        for rank, agent in self.agents.items():
            if agent.poll() is not None and rank not in self.down:
                self.nodes[rank].remove_containers()
                self.agents[rank] = self.nodes[rank].start()

    def wait(self, holds: Callable[[list[dict[str, Any]]], bool], seconds: float = 90) -> float:
        """Seconds until it holds."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self.keep_running()
            if holds([node.status() for node in self.nodes]):
                return time.monotonic() - began
            time.sleep(0.05)
        journals = [
            f"{rank}: {node.status()}\n{node.journal.exists() and node.journal.read_text()[-1500:]}"
            for rank, node in enumerate(self.nodes)
        ]
        pytest.fail("\n".join(journals))

    def wait_serving(self, seconds: float = 30, release: str = RELEASE) -> int:
        """Number of the one start that all ranks are in."""
        self.wait(lambda all_: self.serves(all_, release), seconds)
        return int(self.nodes[0].status()["start"])

    def serves(self, all_: list[dict[str, Any]], release: str = RELEASE) -> bool:
        one_start = len({status.get("start") for status in all_}) == 1
        return one_start and all(
            status["phase"] == "serving"
            and status["release"] == release
            and status["pid"] == self.agents[rank].pid
            for rank, status in enumerate(all_)
        )

    def engine(self, rank: int) -> int:
        """Pid of the engine of a rank."""
        return self.nodes[rank].engine()

    def engines(self) -> list[bool]:
        return [bool(node.containers()) and runs(node.engine()) for node in self.nodes]

    def end(self) -> None:
        for node in self.nodes:
            node.end()
