"""What the lab serves: the tiny model on a folder that stands for the NAS, a shard on each node."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import hub
from pyinfra_vllm.lab.layout import Layout, Machine

REPO = "tiny-random/llama-tp4"
LOCAL_SHARD = "var/tmp/engram-local/llama-tp4/model-00002-of-00002.safetensors"
"""Node-local copy of the last shard, below the node's root."""


def ensure(layout: Layout) -> bool:
    """Make the model's cache snapshot when it is missing; False when it is there."""
    if hub.snapshot_of(layout.nas / "hub", REPO) is not None:
        return False
    try:
        from pyinfra_vllm.lab import tiny_model
    except ImportError as error:
        raise UserError(
            f"the lab makes its own model and needs Python module {error.name!r}: "
            "pip install 'pyinfra-vllm[lab]' (or uv sync in a checkout)"
        ) from error
    hub.write_snapshot(layout.nas / "hub", REPO, tiny_model.files())
    return True


def ensure_local_shard(layout: Layout, machine: Machine) -> None:
    """Copy the last shard to the node's own disk when it is missing there."""
    target = layout.root(machine) / LOCAL_SHARD
    snapshot = hub.snapshot_of(layout.nas / "hub", REPO)
    if target.exists() or snapshot is None:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(target.name + ".new")
    shutil.copyfile(snapshot / Path(LOCAL_SHARD).name, beside)
    beside.rename(target)
