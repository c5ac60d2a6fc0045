"""How a model is fetched: with the node's own hf, else with that of the image."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pyinfra_vllm import model
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.operations.model_fetch import command, lacks
from unit.gangs import content_of

QUESTION = content_of("tiny-cpu-1x").question


def _run(tmp_path: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    for name in programs:
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $* offline=$HF_HUB_OFFLINE to=$HF_ENDPOINT"\n')
        program.chmod(0o755)
    for name in ("bash", "env", "mkdir", "sh"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    argv = command("org/m", "abc", f"{tmp_path}/hub", "image:local", "http://hub")
    environ = {"PATH": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


def test_hf_of_the_node_fetches_the_pinned_revision(tmp_path: Path) -> None:
    done = _run(tmp_path, "hf", "docker")
    assert done.stdout == (
        f"hf download org/m --revision abc --cache-dir {tmp_path}/hub offline=0 to=http://hub\n"
    )


def test_without_hf_the_image_fetches(tmp_path: Path) -> None:
    done = _run(tmp_path, "docker")
    assert done.stdout.startswith("docker run --rm --network host --entrypoint hf")
    hub = tmp_path / "hub"
    assert f"source={hub},target={hub} image:local download org/m" in done.stdout
    assert hub.is_dir(), "docker mounts no folder that isn't there"
    assert "--env HF_HUB_OFFLINE=0 --env HF_ENDPOINT=http://hub" in done.stdout


def test_without_both_it_says_what_to_install(tmp_path: Path) -> None:
    done = _run(tmp_path)
    assert done.returncode == 1 and "pipx install huggingface_hub" in done.stderr
    assert os.path.basename(done.args[0]) == "bash"  # noqa: PTH119


def _state(*snapshots: dict[str, object]) -> NodeState:
    part = {"ok": True, "value": list(snapshots)}
    return NodeState.model_validate({"schema": 1, "snapshots": part})


def _snapshot(*names: str, **changes: object) -> dict[str, object]:
    (repo, pin) = model.repos(QUESTION.recipe)[0]
    entries = {name: {"target": "../../blobs/1", "blob": "1", "size": 1} for name in names}
    return {
        "hub": "/hub", "hub_exists": True, "repo": repo, "asked": pin, "revision": "r",
        "path": "/hub/x", "exists": True, "entries": entries, "missing": [], **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("snapshot", "is_whole"),
    [
        (_snapshot("config.json", "model.safetensors"), True),
        (_snapshot("config.json"), False),
        (_snapshot("config.json", "model.safetensors", unfinished=["1.incomplete"]), False),
        (_snapshot("config.json", "model.safetensors", missing=["x"]), False),
        (_snapshot(exists=False), False),
    ],
)
def test_what_a_cut_download_has_left_is_fetched(
    snapshot: dict[str, object], is_whole: bool
) -> None:
    assert bool(lacks(QUESTION, _state(snapshot))) != is_whole
