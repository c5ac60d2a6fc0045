"""The proof of local shards: as good as reading every byte that the rank reads."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engram_checkpoints as checkpoints
from engram_checkpoints import Part
from pyinfra_vllm.agent import engram, holes, side_manifest
from pyinfra_vllm.agent.engram import Verdict
from pyinfra_vllm.agent.shares import Share

NAME = checkpoints.SHARDS[-1]
ROWS = 4000
BLOCK = 4096


@st.composite
def layouts(draw: st.DrawFn) -> bytes:
    rows = draw(st.integers(1, 600))
    ordinary = [
        Part(f"layers.1.engram.o{n}", draw(st.integers(1, 40)), draw(st.sampled_from([1, 60, 300])))
        for n in range(draw(st.integers(0, 3)))
    ]
    table = [
        Part("layers.1.engram.embed.weight", rows, draw(st.sampled_from([256, 100]))),
        Part("layers.1.engram.embed.scale", rows, 8),
    ]
    parts = draw(st.permutations([*table, *ordinary]))
    return checkpoints.shard(parts, draw(st.integers(0, 5000)), draw(st.integers(0, 9)))


@st.composite
def patterns(draw: st.DrawFn, content: bytes, size: int) -> list[tuple[int, int]]:
    """What copy tools write: rows of any rank, more or fewer of them, tensors left out."""
    whose = draw(st.integers(0, size - 1))
    length = 8 + int.from_bytes(content[:8], "little")
    wanted = [(0, length)] if draw(st.integers(0, 9)) else []
    for name, (rows, start, end) in checkpoints.tensors(content).items():
        if ".embed." not in name:
            if draw(st.integers(0, 9)):
                wanted.append((start, end))
            continue
        width = (end - start) // rows
        first, last = checkpoints.even(rows, size, whose)
        shift = st.sampled_from([0, 0, 0, 1, -1, 20, -20])
        first = max(0, min(rows, first + draw(shift)))
        last = max(first, min(rows, last + draw(shift)))
        wanted.append((start + first * width, start + last * width))
    return [(0, len(content))] if draw(st.integers(0, 5)) == 0 else wanted


def punch(path: Path, first: int, blocks: int) -> None:
    """Whole blocks become a hole: copied again without them."""
    content = path.read_bytes()
    with path.open("rb") as file:
        data = list(holes.data(file.fileno(), len(content)))
    start, end = first * BLOCK, (first + blocks) * BLOCK
    kept = [
        piece for low, high in data for piece in ((low, min(high, start)), (max(low, end), high))
    ]
    path.unlink()
    checkpoints.write_copy(path, content, [piece for piece in kept if piece[0] < piece[1]])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_verdict_is_that_of_reading_every_byte(data: st.DataObject) -> None:
    content = data.draw(layouts())
    size = data.draw(st.integers(1, 5))
    rank = data.draw(st.integers(0, size - 1))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        shard = Path(folder, "shard")
        shard.write_bytes(content)
        pattern = data.draw(patterns(content, size))
        copy = checkpoints.write_copy(Path(folder, "local", NAME), content, pattern)
        for _ in range(data.draw(st.integers(0, 2))):
            last = len(content) // BLOCK
            punch(copy, data.draw(st.integers(0, last)), data.draw(st.integers(1, 3)))
        verdict = engram.judge(copy, shard, Share(rank, size))
        right = checkpoints.reads_right(copy, content, size, rank)
        assert (not verdict.refused) == right, verdict


class Node:
    """A snapshot, a shard of it and a copy for a rank."""

    def __init__(self, root: Path) -> None:
        self.snapshot = checkpoints.lay(root / "hub", ROWS)
        self.shard = self.snapshot / NAME
        self.content = self.shard.read_bytes()
        self.copy = root / "local" / NAME

    def lay(self, rank: int, size: int = 4) -> None:
        checkpoints.write_copy(
            self.copy, self.content, checkpoints.needed(self.content, size, rank)
        )

    def note(self, **values: object) -> None:
        (self.copy.parent / side_manifest.NAME).write_text(json.dumps(values))

    def judge(self, rank: int = 1, size: int = 4, **first_rows: tuple[int, ...]) -> Verdict:
        return engram.judge(self.copy, self.shard, Share(rank, size, first_rows))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_copy_of_this_rank_passes_and_says_what_was_seen(node: Node) -> None:
    node.lay(1)
    verdict = node.judge()
    assert not verdict.refused
    assert "rows 1004:2008 of layer 14 and 2 ordinary tensors for rank 1 of 4" in verdict.good


def test_full_dense_copy_passes_for_every_rank(node: Node) -> None:
    checkpoints.write_copy(node.copy, node.content, [(0, len(node.content))])
    assert not any(node.judge(rank).refused for rank in range(4))


def test_copy_of_another_rank_is_refused_and_that_rank_is_named(node: Node) -> None:
    node.lay(2)
    (weight, scale) = node.judge().refused
    assert "of the 1004 rows that rank 1 of 4 reads from layers.14.engram.embed.weight" in weight
    assert "it has the rows of rank 2" in weight and "embed.scale" in scale


def test_side_manifest_tells_for_whom_the_copy_was_made(node: Node) -> None:
    node.lay(1, size=2)
    node.note(rank=1, parallel_size=2)
    assert "engram-local.json says that it is the copy of rank 1 of 2" in node.judge().refused[0]


def test_copy_for_fewer_ranks_that_has_all_rows_of_this_one_passes(node: Node) -> None:
    node.lay(0, size=2)
    node.note(rank=0, parallel_size=2)
    assert not node.judge(rank=0).refused


def test_one_row_that_is_missing_in_a_block_that_is_there_is_seen(node: Node) -> None:
    node.lay(0, size=2)  # rows 0:2007, and rank 1 of 4 reads 1004:2008
    assert "stale, or written in part" in node.judge(rank=1).refused[0]


def test_ordinary_tensor_that_a_tool_left_out_is_named(node: Node) -> None:
    name = "layers.14.engram.wkv.weight"
    _, start, end = checkpoints.tensors(node.content)[name]
    wanted = [piece for piece in checkpoints.needed(node.content, 4, 1) if piece != (start, end)]
    checkpoints.write_copy(node.copy, node.content, wanted)
    (why,) = node.judge().refused
    assert why.startswith(name) and "would load as zeros" in why


def test_split_of_the_recipe_decides_which_rows_are_needed(node: Node) -> None:
    node.lay(1)
    assert not node.judge(**{"14": (0, 1004, 2000, 3000)}).refused
    refused = node.judge(**{"14": (0, 900, 2008, 3000)}).refused
    assert "of the 1108 rows that rank 1 of 4 reads" in refused[0]


def test_rows_that_the_side_manifest_claims_must_be_there_too(node: Node) -> None:
    node.lay(1)
    node.note(layers={"14": [900, 2008]})
    assert "of the 1108 rows that rank 1 of 4 reads" in node.judge().refused[0]


@pytest.mark.parametrize("cut", [1, BLOCK, 10 * BLOCK])
def test_copy_of_another_length_is_refused(node: Node, cut: int) -> None:
    node.lay(1)
    os.truncate(node.copy, len(node.content) - cut)
    assert "the shard that it replaces" in node.judge().refused[0]


def test_copy_with_another_header_is_refused(node: Node) -> None:
    node.lay(1)
    with node.copy.open("r+b") as file:
        file.seek(60)
        file.write(b"!")
    assert "its header is not that of" in node.judge().refused[0]


def test_copy_of_an_older_blob_is_stale(node: Node) -> None:
    node.lay(1)
    node.note(files={NAME: {"sha256": "f" * 64}})
    assert node.judge().refused[0].startswith("stale: it was copied from blob ffffffffffff")
    node.note(files={NAME: {"sha256": node.shard.readlink().name}})
    assert "which the snapshot has" in node.judge().good


def test_older_revision_in_the_cache_tells_whether_a_copy_is_stale(node: Node) -> None:
    node.lay(1)
    older = node.snapshot.with_name("a" * 40)
    older.mkdir()
    node.note(source=f"hub/snapshots/{'a' * 40}", layers={"14": [1004, 2008]})
    (older / NAME).symlink_to(node.shard.readlink())
    assert not node.judge().refused
    (older / NAME).unlink()
    (older / NAME).symlink_to(f"../../blobs/{'e' * 64}")
    assert node.judge().refused[0].startswith("stale")


def test_model_with_the_same_header_and_other_weights_is_seen_at_the_edges(node: Node) -> None:
    node.lay(1)
    node.shard.resolve().write_bytes(checkpoints.files(ROWS, seed=7)[NAME])
    assert "stale, or written in part" in node.judge().refused[0]


def test_reserved_space_that_was_never_written_is_a_hole(node: Node) -> None:
    node.lay(2)
    with node.copy.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, len(node.content))
    assert node.judge().refused


def test_shard_that_only_the_local_file_brings_is_judged_by_itself(node: Node) -> None:
    node.lay(1)
    assert not engram.judge(node.copy, None, Share(1, 4)).refused
    assert engram.judge(node.copy, None, Share(3, 4)).refused


def test_a_hundred_gigabytes_are_judged_within_a_second(tmp_path: Path) -> None:
    rows = 384_006_168
    entries, at = {}, 0
    for name, width in (("weight", 256), ("scale", 8)):
        offsets = [at, at + rows * width]
        entry = {"dtype": "U8", "shape": [rows, width], "data_offsets": offsets}
        entries[f"layers.1.engram.embed.{name}"] = entry
        at = offsets[1]
    text = json.dumps(entries).encode()
    copy = tmp_path / NAME
    with copy.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
        for number in range(1, 2000):
            os.pwrite(file.fileno(), b"x", number * 50_000_000)
    began = time.monotonic()
    verdict = engram.judge(copy, None, Share(1, 4))
    assert time.monotonic() - began < 1
    assert "96001542" in verdict.refused[0]
