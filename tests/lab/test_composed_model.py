"""Composed models and Engram copies on real nodes, composed by the agent as before a start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import engram_checkpoints as checkpoints
from pyinfra_vllm import model
from pyinfra_vllm.agent import paths
from pyinfra_vllm.lab import commands, control, hub
from pyinfra_vllm.recipe import Recipe

from .conftest import Lab, bring_up, require_root

pytestmark = pytest.mark.lab

NAME = "models"
HUB = "/mnt/nas/hub"
COPIES = "/var/tmp/engram-local/engram"
GANG = "models"
ROOT = Path(__file__).parents[2]
RECIPE = {
    "engine": "vllm",
    "name": "Engram",
    "docker_image": "none:local",
    "model": checkpoints.REPO,
    "required_nodes": 4,
    "tensor_parallel_size": 4,
    "composed_model": {
        "mount": "/model",
        "sources": [{"repo": checkpoints.REPO}],
        "local_files": [{"host": f"{COPIES}/{name}"} for name in checkpoints.SHARDS[2:]],
    },
}


class Nodes:
    """The lab with a checkpoint that has Engram tables, and a release of it on a node."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.snapshot = checkpoints.lay(lab.layout.nas / "hub")

    def deploy(self, *data: str) -> str:
        folder = self.lab.layout.state / "engram-4x"
        folder.mkdir(exist_ok=True)
        (folder / "recipe.toml").write_text(_toml())
        words = [f"recipe={folder}", *data]
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("pyinfra")), "-y",
                str(ROOT / "inventory" / "lab.py"), str(ROOT / "deploys" / "engram.py"),
                *(word for pair in words for word in ("--data", pair)),
            ],
            env=os.environ | {"PYINFRA_VLLM_LAB": NAME},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        text = done.stdout + done.stderr
        assert done.returncode == 0, text
        return text

    def stage(self, rank: int, **changes: object) -> None:
        """Write the manifest of a release on the node of that rank."""
        recipe = Recipe.model_validate(RECIPE)
        directory = paths.composed(GANG, "r1")
        revisions = {checkpoints.REPO: self.snapshot.name}
        manifest = model.manifest(recipe, rank, HUB, directory, revisions) | changes
        folder = self.root(rank) / "root" / "release"
        folder.mkdir(exist_ok=True)
        (folder / paths.MANIFEST).write_text(json.dumps(manifest))

    def root(self, rank: int) -> Path:
        return self.lab.layout.root(self.lab.machines[rank])

    def compose(self, rank: int) -> str:
        """What the agent says, whether it succeeds or not."""
        return self.lab.ask(rank, f"python3 {paths.AGENT} compose /root/release 2>&1 || true")


def _toml() -> str:
    lines = [f"{key} = {json.dumps(RECIPE[key])}" for key in RECIPE if key != "composed_model"]
    lines += ["[composed_model]", 'mount = "/model"']
    lines += ["[[composed_model.sources]]", f'repo = "{checkpoints.REPO}"']
    for name in checkpoints.SHARDS[2:]:
        lines += ["[[composed_model.local_files]]", f'host = "{COPIES}/{name}"']
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    require_root()
    lab = Lab(bring_up(NAME, with_images=False))
    found = Nodes(lab)
    found.deploy()
    yield found
    commands.down(NAME)


def test_second_run_changes_nothing(nodes: Nodes) -> None:
    last = [line for line in nodes.deploy().splitlines() if "Engram copies: whole " in line][-1]
    assert last.split()[-4:] == ["4", "-", "-", "4"]  # hosts, success, error, no change


def test_every_rank_composes_its_own_copies(nodes: Nodes) -> None:
    for rank in range(4):
        nodes.stage(rank)
        said = nodes.compose(rank)
        assert "links made" in said and f"for rank {rank} of 4" in said, said


def test_copy_of_another_rank_is_refused(nodes: Nodes) -> None:
    name = checkpoints.SHARDS[2]
    mine, other = (nodes.root(rank) / COPIES.lstrip("/") for rank in (0, 1))
    shutil.move(mine / name, mine / "aside")
    subprocess.run(["cp", "--sparse=always", other / name, mine / name], check=True)
    said = nodes.compose(0)
    (mine / name).unlink()
    shutil.move(mine / "aside", mine / name)
    assert "rows that rank 0 of 4 reads from layers.1.engram.embed.weight" in said
    assert "it has the rows of rank 1" in said
    assert "as they should be" in nodes.compose(0)


def test_cache_that_is_not_mounted_is_named(nodes: Nodes) -> None:
    nodes.lab.ask(0, "umount /mnt/nas")
    try:
        assert "is its file system mounted?" in nodes.compose(0)
    finally:
        control.reboot(NAME, nodes.lab.machines[0].name)


def test_links_are_made_again_after_a_boot(nodes: Nodes) -> None:
    nodes.lab.ask(0, f"rm -rf {paths.COMPOSED_ROOT}")
    said = nodes.compose(0)
    assert "links made" in said and "for rank 0 of 4" in said, said


def test_composed_root_in_memory_is_explained_and_a_copy_is_the_way_out(nodes: Nodes) -> None:
    root = paths.COMPOSED_ROOT
    nodes.lab.ask(3, f"rm -rf {root}; mkdir {root}; mount -t tmpfs tmpfs {root}")
    try:
        assert "which is in memory (tmpfs)" in nodes.compose(3)
        local = [
            {"host": f"{COPIES}/{name}", "name": name, "copy": True}
            for name in checkpoints.SHARDS[2:]
        ]
        nodes.stage(3, local_files=local)
        assert "links made" in nodes.compose(3)
        used = nodes.lab.ask(3, f"du -s --block-size=1M {root}").split()[0]
        assert int(used) < 30  # of 53 MB
    finally:
        nodes.lab.ask(3, f"umount {root}")
        nodes.stage(3)


def test_five_thousand_files_are_composed_by_one_command(nodes: Nodes) -> None:
    files = {f"file{n}.txt": b"%d" % n for n in range(5000)}
    snapshot = hub.write_snapshot(
        nodes.lab.layout.nas / "hub",
        "tiny-random/many",
        {**files, "config.json": b"{}", "model.bin": b"1"},
    )
    source = {
        "repo": "tiny-random/many",
        "revision": snapshot.name,
        "snapshot": f"{HUB}/models--tiny-random--many/snapshots/{snapshot.name}",
    }
    nodes.stage(2, sources=[source], local_files=[])
    for _ in range(2):
        began = time.monotonic()
        said = nodes.compose(2)
        print(f"5,002 files: {time.monotonic() - began:.2f} s: {said}")
    assert "5002 links, as they should be" in said
    nodes.stage(2)


def test_update_of_the_model_makes_the_copies_stale_until_they_are_made_again(
    nodes: Nodes,
) -> None:
    nodes.snapshot = checkpoints.lay(nodes.lab.layout.nas / "hub", seed=3)
    nodes.stage(1)
    assert "stale: it was copied from blob" in nodes.compose(1)
    nodes.deploy()
    said = nodes.compose(1)
    assert "links made" in said and "which the snapshot has" in said
