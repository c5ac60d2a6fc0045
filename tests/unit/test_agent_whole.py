"""What the names of a model's files tell about those that are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_launch import document_of
from agent_model import Model
from pyinfra_vllm.agent import paths, whole
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.node.collect import cache


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    return Model(tmp_path)


def test_numbered_shards_tell_which_of_them_are_missing() -> None:
    names = ["model-00001-of-00003.safetensors", "sub/x-00002-of-00002.bin", "config.json"]
    assert whole.lacking_shards(names) == {
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
        "sub/x-00001-of-00002.bin",
    }
    assert whole.lacking_shards(["model.safetensors", "a-1-of-2.bin"]) == set()


def test_model_without_weights_is_a_download_that_did_not_end(model: Model) -> None:
    for name in ("one.safetensors", "two.safetensors", "model.safetensors.index.json"):
        (model.snapshot / name).unlink()
    model.lay_manifest(local_files=[])
    with pytest.raises(Unmet, match="has no weights: the download did not end; fetch it"):
        model.compose()


def test_numbered_shard_that_is_missing_is_named_without_an_index(model: Model) -> None:
    model.add("m-00001-of-00002.safetensors", "\2\0\0\0\0\0\0\0{}")
    with pytest.raises(Unmet, match=r"lacks m-00002-of-00002\.safetensors; fetch it"):
        model.compose()


def test_engine_with_made_up_weights_needs_none(model: Model) -> None:
    for name in ("one.safetensors", "two.safetensors", "model.safetensors.index.json"):
        (model.snapshot / name).unlink()
    model.lay_manifest(local_files=[])
    document = launch_document(model)
    (model.release / paths.LAUNCH).write_text(json.dumps(document))
    assert "links made" in model.compose()


def launch_document(model: Model) -> dict[str, object]:
    mount = {"source": str(model.hub), "target": str(model.hub), "read_only": True, "create": False}
    return document_of(argv=["vllm", "serve", "--load-format", "dummy"], mounts=[mount])


def test_download_that_goes_on_is_seen_in_the_node_state(model: Model) -> None:
    blobs = model.hub / "models--org--m" / "blobs"
    (blobs / "abc.1234.incomplete").touch()
    (blobs / "one").touch()
    for name in ("one.incomplete", "one.5678.incomplete"):
        (blobs / name).touch()  # its blob is there: a try that was given up
    found = cache.snapshot(str(model.hub), "org/m", model.snapshot.name)
    assert found["unfinished"] == ["abc.1234.incomplete"]
    (model.snapshot / "m-00002-of-00002.safetensors").symlink_to("../../blobs/one")
    found = cache.snapshot(str(model.hub), "org/m", model.snapshot.name)
    assert found["missing"] == ["m-00001-of-00002.safetensors"]
