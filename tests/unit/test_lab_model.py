from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load
from tokenizers import Tokenizer

from pyinfra_vllm.lab import hub, nas, tiny_model


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return tiny_model.files()


def test_the_model_is_the_same_bytes_every_time(files: dict[str, bytes]) -> None:
    assert tiny_model.files() == files


def test_every_tensor_is_in_the_shard_that_the_index_names(files: dict[str, bytes]) -> None:
    index = json.loads(files["model.safetensors.index.json"])
    shards = {name: load(content) for name, content in files.items() if "safetensors" in name[-11:]}
    assert len(shards) == 2
    found = {tensor: shard for shard, tensors in shards.items() for tensor in tensors}
    assert found == index["weight_map"]
    size = sum(tensor.nbytes for tensors in shards.values() for tensor in tensors.values())
    assert index["metadata"]["total_size"] == size


def test_heads_split_by_four(files: dict[str, bytes]) -> None:
    config = json.loads(files["config.json"])
    assert config["num_attention_heads"] % 4 == config["num_key_value_heads"] % 4 == 0
    weights = {
        name: tensor for shard in tiny_model.SHARDS for name, tensor in load(files[shard]).items()
    }
    heads = config["num_attention_heads"] * config["head_dim"]
    assert weights["model.layers.1.self_attn.q_proj.weight"].shape == (heads, 64)
    assert weights["lm_head.weight"].shape == (config["vocab_size"], 64)
    assert {tensor.dtype for tensor in weights.values()} == {np.dtype(np.float16)}


def test_the_tokenizer_has_one_token_a_byte_and_loses_nothing(files: dict[str, bytes]) -> None:
    tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode())
    text = "Grüße, 4 nodes\n\tok 漢字"
    ids = tokenizer.encode(text).ids
    assert ids == list(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer.get_vocab_size() == 258
    assert tokenizer.token_to_id("<s>") == 256


def test_the_cache_is_laid_as_the_hub_lays_it(tmp_path: Path) -> None:
    content = {"config.json": b"{}\n", "model.safetensors": b"weights"}
    snapshot = hub.write_snapshot(tmp_path, "a/b", content)
    assert snapshot == hub.snapshot_of(tmp_path, "a/b")
    assert snapshot.parent == tmp_path / "models--a--b" / "snapshots"
    assert len(snapshot.name) == 40
    links = {path.name: str(path.readlink()) for path in snapshot.iterdir()}
    assert links == {
        "config.json": "../../blobs/" + hashlib.sha1(b"blob 3\0{}\n").hexdigest(),
        "model.safetensors": "../../blobs/" + hashlib.sha256(b"weights").hexdigest(),
    }
    assert {name: (snapshot / name).read_bytes() for name in links} == content


def test_laying_it_again_changes_nothing(tmp_path: Path) -> None:
    first = hub.write_snapshot(tmp_path, "a/b", {"x": b"1"})
    assert hub.write_snapshot(tmp_path, "a/b", {"x": b"1"}) == first
    assert hub.write_snapshot(tmp_path, "a/b", {"x": b"2"}) != first


def test_a_cache_without_the_repo_has_no_snapshot(tmp_path: Path) -> None:
    assert hub.snapshot_of(tmp_path, "a/b") is None


def test_the_local_shard_is_one_of_the_models(files: dict[str, bytes]) -> None:
    assert Path(nas.LOCAL_SHARD).name in files
