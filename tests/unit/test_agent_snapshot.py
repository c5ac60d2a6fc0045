"""What is missing for a composed model, and what its message says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from agent_model import REVISION, Model
from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.errors import Unmet


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    return Model(tmp_path)


def test_missing_snapshot_names_the_command_that_fetches_it(model: Model) -> None:
    model.snapshot.rename(model.snapshot.with_name("other"))
    with pytest.raises(Unmet) as unmet:
        model.compose()
    expected = f"HF_HUB_CACHE={model.hub} hf download org/m --revision {REVISION}"
    assert expected in str(unmet.value)


def test_empty_cache_asks_whether_it_is_mounted(model: Model) -> None:
    model.hub.rename(model.hub.with_name("away"))
    with pytest.raises(Unmet, match="is its file system mounted"):
        model.compose()
    model.hub.mkdir()
    with pytest.raises(Unmet, match="is empty: is it mounted"):
        model.compose()


def test_blob_that_was_not_downloaded_is_named(model: Model) -> None:
    (model.hub / "models--org--m" / "blobs" / "one.safetensors").unlink()
    with pytest.raises(Unmet, match=r"not complete: one.safetensors without content"):
        model.compose()


def test_shard_of_the_index_that_is_lacking_is_named(model: Model) -> None:
    (model.snapshot / "one.safetensors").unlink()
    with pytest.raises(Unmet, match=r"names one.safetensors that the model lacks"):
        model.compose()


def test_shard_that_only_the_local_file_brings_is_enough(model: Model) -> None:
    (model.snapshot / "two.safetensors").unlink()
    assert "5 links made" in model.compose()


def test_model_without_its_configuration_is_refused(model: Model) -> None:
    (model.snapshot / "config.json").unlink()
    with pytest.raises(Unmet, match=r"no config.json"):
        model.compose()


def test_missing_local_file_is_named(model: Model) -> None:
    model.local.unlink()
    with pytest.raises(Unmet, match=f"local file {model.local} is not on this node"):
        model.compose()


def test_local_file_that_is_a_symlink_is_refused_with_the_file_behind_it(model: Model) -> None:
    real = model.local.with_name("real")
    model.local.rename(real)
    model.local.symlink_to(real)
    with pytest.raises(Unmet, match=f"is a symlink to {real}"):
        model.compose()


def test_local_file_that_is_a_folder_is_refused(model: Model) -> None:
    model.local.unlink()
    model.local.mkdir()
    with pytest.raises(Unmet, match="no regular file"):
        model.compose()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EXDEV, "different file systems"),
        (errno.EPERM, "protected_hardlinks"),
        (errno.EMLINK, "can't be hard-linked into"),
    ],
)
def test_hard_link_that_fails_leaves_nothing_and_says_what_to_do(
    model: Model, monkeypatch: pytest.MonkeyPatch, number: int, expected: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Unmet, match=expected):
        model.compose()
    assert _names(model.directory.parent) == [".lock"]


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev,
    reason="needs two file systems",
)
def test_file_systems_that_differ_are_met_as_they_are(model: Model) -> None:
    far = Path("/dev/shm") / f"pyinfra-vllm-test-{os.getpid()}"
    far.write_text("rows")
    try:
        model.lay_manifest(local_files=[{"host": str(far), "name": "two.safetensors"}])
        with pytest.raises(Unmet, match="a copy is never made"):
            model.compose()
    finally:
        far.unlink()


def test_directory_outside_of_the_composed_root_is_refused(model: Model) -> None:
    model.lay_manifest(directory="/etc")
    with pytest.raises(Unmet, match="is not below"):
        model.compose()
