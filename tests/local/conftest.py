"""Operations on this machine, with every path of a node below a temporary folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.context import ctx_config, ctx_state

from pyinfra_vllm import catalog
from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.release import Content, Release, release_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"

# Remembers what is enabled in a file beside itself; knows no other state.
_SYSTEMCTL = """#!/bin/sh
home=$(dirname "$0")
echo "$@" >> "$home/systemctl.log"
case "$*" in
    *enable*) touch "$home/enabled" ;;
    show*)
        echo LoadState=loaded
        echo ActiveState=inactive
        [ -e "$home/enabled" ] && echo UnitFileState=enabled || echo UnitFileState=disabled
        echo NeedDaemonReload=no
        ;;
esac
"""

Applied = dict[str, bool]
Apply = Callable[..., Applied]


@pytest.fixture
def node_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the root of a node, with a systemctl of its own."""
    root = tmp_path / "node"
    for name in ("STATE_ROOT", "RUN_ROOT", "CACHE_ROOT", "COMPOSED_ROOT", "AGENT", "UNIT_ROOT"):
        monkeypatch.setattr(paths, name, f"{root}{getattr(paths, name)}")
    monkeypatch.setattr(paths, "TMPFILES", f"{root}{paths.TMPFILES}")
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(root))
    binaries = tmp_path / "bin"
    binaries.mkdir()
    systemctl = binaries / "systemctl"
    systemctl.write_text(_SYSTEMCTL)
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    return root


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A Hugging Face cache with a snapshot of two shards: blobs, relative links, refs/main."""
    model = tmp_path / "hub" / "models--tiny-random--llama-tp4"
    snapshot = model / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)
    for index in (1, 2):
        name = f"model-0000{index}-of-00002.safetensors"
        (model / "blobs" / f"b{index}").write_bytes(_shard(f"t{index}"))
        (snapshot / name).symlink_to(f"../../blobs/b{index}")
    (model / "blobs" / "c").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/c")
    return tmp_path / "hub"


def _shard(tensor: str) -> bytes:
    """A whole safetensors file with one tensor of one byte."""
    header = json.dumps({tensor: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0"


@pytest.fixture
def local_release(node_root: Path, hub: Path, tmp_path: Path) -> Release:
    """A release of one node, with one shard from the node's own disk."""
    shard = tmp_path / "local" / "model-00002-of-00002.safetensors"
    shard.parent.mkdir()
    shutil.copyfile(hub / "models--tiny-random--llama-tp4" / "blobs" / "b2", shard)
    recipe = catalog.find("tiny-cpu-1x").recipe
    assert recipe.composed_model
    local = recipe.composed_model.local_files[0].model_copy(update={"host": str(shard)})
    composed = recipe.composed_model.model_copy(update={"local_files": (local,)})
    recipe = recipe.model_copy(update={"composed_model": composed})
    node = Node("@local", 0, "", (), (), str(hub), False)
    revisions = {"tiny-random/llama-tp4": COMMIT}
    return release_of(Content("tiny-cpu-1x", recipe, Gang("main", (node,)), None, revisions))


@pytest.fixture
def apply() -> Apply:
    """Run operations through pyinfra's API: ``apply(release, op, …)`` -> op name -> changed."""

    def run(release: Release, *operations: Any, diff: bool = False) -> Applied:
        inventory = Inventory((["@local"], {}))
        state = State(inventory, Config(DIFF=diff))
        with ctx_state.use(state), ctx_config.use(state.config):
            connect_all(state)
            metas = {}
            for operation in operations:
                name = f"{operation.__module__.rpartition('.')[2]}.{operation.__name__}"
                (metas[name],) = add_op(state, operation, release=release, name=name).values()
            run_ops(state)
        return {name: meta.did_change() for name, meta in metas.items()}

    return run
