"""Local copies of shards with Engram tables: made, topped up, left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import engram_checkpoints as checkpoints
from pyinfra_vllm.agent import engram_job, fill_work, side_manifest
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.errors import Unmet

NAMES = checkpoints.SHARDS[2:]
ROWS = 4000


class Node:
    """A snapshot and a folder for the copies of rank 1 of 4."""

    def __init__(self, root: Path) -> None:
        self.snapshot = checkpoints.lay(root / "hub", ROWS)
        self.folder = root / "local"
        self.said: list[str] = []

    def plan(self, **changes: Any) -> dict[str, Any]:
        files = [
            {"host": str(self.folder / name), "shard": str(self.snapshot / name)} for name in NAMES
        ]
        plan = {
            "schema": 1,
            "repo": checkpoints.REPO,
            "revision": self.snapshot.name,
            "engram": {"rank": 1, "parallel_size": 4},
            "rate": 0,
            "verify": False,
            "files": files,
        }
        return plan | changes

    def run(self, **changes: Any) -> None:
        self.said.clear()
        plan = Document("plan", self.plan(**changes))
        engram_job.run(engram_job.parse(plan), self.said.append)

    def lacking(self, **changes: Any) -> dict[str, Any]:
        return engram_job.look(self.plan(**changes))

    def content(self, name: str) -> bytes:
        return (self.snapshot / name).read_bytes()

    def are_right(self, rank: int = 1) -> bool:
        return all(
            checkpoints.reads_right(self.folder / name, self.content(name), 4, rank)
            for name in NAMES
        )

    def states(self) -> list[tuple[int, int]]:
        files = [self.folder / name for name in NAMES]
        return [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files]

    def lay(self, name: str, wanted: list[tuple[int, int]]) -> None:
        checkpoints.write_copy(self.folder / name, self.content(name), wanted)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_copies_are_sparse_and_have_what_the_rank_reads(node: Node) -> None:
    assert all(found["lacking"] == ["is not there"] for found in node.lacking().values())
    node.run()
    assert node.are_right() and not node.are_right(rank=2)
    file = (node.folder / NAMES[0]).stat()
    assert file.st_size == len(node.content(NAMES[0])) and file.st_blocks * 512 < file.st_size / 2
    assert sorted(os.listdir(node.folder)) == sorted([*NAMES, side_manifest.NAME])  # noqa: PTH208


def test_second_run_does_nothing(node: Node) -> None:
    node.run()
    before = node.states()
    assert not any(found["lacking"] for found in node.lacking().values())
    node.run()
    assert node.states() == before


def test_side_manifest_says_what_the_copies_are(node: Node) -> None:
    node.run()
    note = side_manifest.document(node.folder)
    assert note["layers"] == {"1": [1001, 2002], "14": [1004, 2008]}
    assert (note["rank"], note["parallel_size"]) == (1, 4)
    assert note["revision"] == node.snapshot.name
    file = note["files"][NAMES[0]]
    assert file["sha256"] == (node.snapshot / NAMES[0]).readlink().name
    assert file["ranges"] and file["checksums"]


def test_existing_copy_keeps_its_rows_and_its_inode_lives_on(node: Node) -> None:
    name = NAMES[1]
    tables = checkpoints.tensors(node.content(name))
    _, start, end = tables["layers.14.engram.embed.weight"]
    extra = (start + 3000 * 256, start + 3100 * 256)
    some = [piece for piece in checkpoints.needed(node.content(name), 4, 1) if piece[1] < end]
    node.lay(name, [*some[:1], (start + 1100 * 256, start + 2008 * 256), extra])
    with (node.folder / name).open("rb") as running:
        before = os.fstat(running.fileno())
        node.run()
        after = os.fstat(running.fileno())
        assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
        assert (node.folder / name).stat().st_ino != before.st_ino
    assert node.are_right()
    copy = (node.folder / name).read_bytes()
    assert copy[extra[0] : extra[1]] == node.content(name)[extra[0] : extra[1]]
    assert any("keeps" in line for line in node.said)


def test_rows_that_the_side_manifest_claims_are_in_the_copy_too(node: Node) -> None:
    node.folder.mkdir()
    note = {"source": "x", "layers": {"14": [950, 2000]}}
    (node.folder / side_manifest.NAME).write_text(json.dumps(note))
    node.run()
    assert side_manifest.document(node.folder)["layers"]["14"] == [950, 2008]


def test_copy_of_other_content_is_made_anew(node: Node) -> None:
    old = checkpoints.files(ROWS, seed=9)
    for name in NAMES:
        wanted = checkpoints.needed(old[name], 4, 1)[:-1]
        checkpoints.write_copy(node.folder / name, old[name], wanted)
    node.run()
    assert node.are_right()


def test_update_of_the_model_makes_the_copies_anew(node: Node) -> None:
    node.run()
    node.snapshot = checkpoints.lay(node.snapshot.parents[2], ROWS, seed=5)
    assert all("stale" in found["lacking"][0] for found in node.lacking().values())
    node.run()
    assert node.are_right()


def test_rank_that_moved_gets_its_own_rows(node: Node) -> None:
    node.run()
    moved = {"rank": 3, "parallel_size": 4}
    node.run(engram=moved)
    assert node.are_right(rank=3)
    assert side_manifest.document(node.folder)["rank"] == 3


def test_copy_that_was_cut_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill_work, "_PIECE", 4096)
    monkeypatch.setattr(fill_work, "_SYNC_EVERY", 16384)
    written = 0
    pwrite = os.pwrite

    def cut(descriptor: int, data: bytes, at: int) -> int:
        nonlocal written
        written += len(data)
        if written > 200_000:
            raise KeyboardInterrupt
        return pwrite(descriptor, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", cut)
        with pytest.raises(KeyboardInterrupt):
            node.run()
    assert not (node.folder / NAMES[0]).exists()
    node.run()
    assert any("goes on, " in line for line in node.said)
    assert node.are_right()


def test_full_verification_finds_and_repairs_what_holes_can_t_tell(node: Node) -> None:
    node.run()
    node.run(verify=True)
    assert sum("are as in" in line for line in node.said) == 2
    _, start, _ = checkpoints.tensors(node.content(NAMES[0]))["layers.1.engram.embed.weight"]
    with (node.folder / NAMES[0]).open("r+b") as file:
        os.pwrite(file.fileno(), b"\0" * 9, start + 1500 * 256)
    assert not node.are_right()
    node.run(verify=True)
    assert any("differ from" in line for line in node.said)
    assert node.are_right()


def test_full_disk_is_found_before_anything_is_written(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.statvfs_result((4096, 4096, 10, 1, 1, 10, 10, 10, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(Unmet, match=r"no room for .*are to be written, 4.096 KB are free"):
        node.run()


def test_rate_limit_holds(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(fill_work.time, "sleep", slept.append)
    node.run(rate=100_000)
    assert max(slept) > 1


def test_shard_that_is_cut_is_not_copied(node: Node) -> None:
    blob = (node.snapshot / NAMES[0]).resolve()
    os.truncate(blob, 500_000)
    with pytest.raises(Unmet, match="fetch it again"):
        node.run()
