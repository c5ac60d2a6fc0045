"""How long a composed model of many files takes: to tell its state, to make it, to look again.

    python tests/bench/composed.py [FILES]

On this machine, below a temporary folder that stands for a node's root; each figure is one
command, as it is sent to a node, the median of three runs. To reach with 5,000 files: the state
in 1 s, a directory made in 2 s.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent_archive import archive
from pyinfra_vllm.lab import hub
from pyinfra_vllm.node import Query, SnapshotQuery, parse, script

REPO = "bench/many"
RUNS = 3


class Node:
    """A root with a snapshot of so many files in a cache, and a release that composes it."""

    def __init__(self, root: Path, files: int) -> None:
        self.root, self.cache = root, root / "hub"
        contents = {f"part{n // 100}/file{n}.txt": b"%d" % n for n in range(files - 2)}
        self.snapshot = hub.write_snapshot(
            self.cache, REPO, {**contents, "config.json": b"{}", "model.bin": b"1"}
        )
        self.directory = paths.here(paths.composed("main", "r"))
        self.agent = root / "agent.pyz"
        self.agent.write_bytes(archive())
        self.release = root / "release"
        self.release.mkdir()
        source = {"repo": REPO, "revision": self.snapshot.name, "snapshot": str(self.snapshot)}
        manifest = {"schema": 1, "directory": str(self.directory), "local_files": []}
        (self.release / paths.MANIFEST).write_text(json.dumps({**manifest, "sources": [source]}))

    def forget(self) -> None:
        shutil.rmtree(self.directory.parent, ignore_errors=True)

    def compose(self) -> None:
        words = [sys.executable, "-I", str(self.agent), "compose", str(self.release)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def state(self) -> None:
        asked = SnapshotQuery(hub=str(self.cache), repo=REPO)
        query = Query(snapshots=(asked,), composed=(str(self.directory),))
        words = [sys.executable, "-IS", "-", "state"]
        done = subprocess.run(
            words, input=script(query), check=True, capture_output=True, text=True
        )
        self.answer = done.stdout


def figures(work: Callable[[], None], before: Callable[[], None] | None = None) -> str:
    """Median of the wall clock, and of the processor's time, in seconds."""
    walls, used = [], []
    for _ in range(RUNS):
        if before:
            before()
        began, times = time.monotonic(), os.times()
        work()
        walls.append(time.monotonic() - began)
        after = os.times()
        used.append(
            after.children_user
            + after.children_system
            - times.children_user
            - times.children_system
        )
    wall, processor = statistics.median(walls), statistics.median(used)
    return f"{wall:6.2f} s ({processor:.2f} s of processor)"


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory() as folder:
        os.environ[paths.ROOT_VARIABLE] = folder
        node = Node(Path(folder), files)
        print(f"{files} files, made anew    {figures(node.compose, node.forget)}")
        print(f"{files} files, looked at    {figures(node.compose)}")
        print(f"{files} files, node state   {figures(node.state)}")
        began = time.monotonic()
        parse(node.answer)
        print(f"its {len(node.answer) / 1e6:.1f} MB understood {time.monotonic() - began:6.2f} s")


if __name__ == "__main__":
    main()
