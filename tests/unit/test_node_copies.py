"""The node state tells what local copies of Engram shards lack, in the agent's own words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import engram_checkpoints as checkpoints
from pyinfra_vllm.agent import engram
from pyinfra_vllm.agent.shares import Share
from pyinfra_vllm.node import parse, script
from pyinfra_vllm.node.models import Copy
from pyinfra_vllm.node.query import CopyQuery, Query, SnapshotQuery

ROWS = 4000
NAME = checkpoints.SHARDS[2]
CONTENT = checkpoints.files(ROWS)[NAME]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    checkpoints.lay(tmp_path / "hub", ROWS)
    return tmp_path / "hub"


def told(hub: Path, copy: Path, rank: int = 1) -> Copy | None:
    """What the script says that is sent to nodes, run as it is run there."""
    source = SnapshotQuery(hub=str(hub), repo=checkpoints.REPO)
    asked = CopyQuery(host=str(copy), sources=(source,), rank=rank, parallel_size=4)
    done = subprocess.run(
        [sys.executable, "-IS", "-", "state"],
        input=script(Query(copies=(asked,))),
        capture_output=True,
        text=True,
        check=True,
    )
    return parse(done.stdout).copies.required.get(str(copy))


def test_copy_with_this_ranks_rows_is_good(hub: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / NAME
    checkpoints.write_copy(copy, CONTENT, checkpoints.needed(CONTENT, 4, 1))
    found = told(hub, copy)
    assert found is not None and found.refused == () and "for rank 1 of 4" in found.good


def test_copy_of_another_rank_is_refused_as_the_agent_refuses_it(hub: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / NAME
    checkpoints.write_copy(copy, CONTENT, checkpoints.needed(CONTENT, 4, 2))
    found = told(hub, copy)
    (snapshot,) = (hub / "models--tiny-random--engram" / "snapshots").iterdir()
    verdict = engram.judge(copy, snapshot / NAME, Share(1, 4))
    assert found is not None and found.refused == verdict.refused != ()
    assert "it has the rows of rank 2" in found.refused[0]


def test_copy_of_an_older_model_is_refused(hub: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / NAME
    checkpoints.write_copy(copy, CONTENT, checkpoints.needed(CONTENT, 4, 1))
    checkpoints.lay(hub, ROWS, seed=9)
    found = told(hub, copy)
    assert found is not None and "stale" in found.refused[0]


def test_what_cannot_be_judged_is_left_to_other_checks(hub: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / NAME
    assert told(hub, copy) is None
    checkpoints.write_copy(copy, CONTENT, [])
    assert told(tmp_path / "no hub", copy) is None
    link = copy.with_name("link")
    link.symlink_to(copy)
    assert told(hub, link) is None


def test_the_judges_are_sent_only_where_there_is_something_to_judge() -> None:
    source = SnapshotQuery(hub="/hub", repo="a/b")
    asked = CopyQuery(host="/x", sources=(source,), rank=0, parallel_size=1)
    assert "pyinfra_vllm.agent.engram" in script(Query(copies=(asked,)))
    assert len(script(Query())) + 20_000 < len(script(Query(copies=(asked,))))
