"""What is missing for a composed model, and what its message says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from agent_model import REVISION, Model
from pyinfra_vllm.agent import hard_links, paths
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
        (errno.EXDEV, "a hard link can't cross mounts"),
        (errno.EPERM, "is it immutable"),
        (errno.EMLINK, "as many hard links as its file system allows"),
        (errno.EROFS, "can't be hard-linked into"),
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


def test_owner_who_is_another_meets_protected_hardlinks(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(hard_links, "_is_protected", lambda: True)
    error = OSError(errno.EPERM, os.strerror(errno.EPERM))
    why = hard_links.why_not(error, str(model.local), model.directory)
    assert "fs.protected_hardlinks=1 allows it only to its owner" in why and "4711" in why


def test_composed_root_in_memory_is_its_own_message(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        hard_links,
        "mount_of",
        lambda path: (
            hard_links.Mount("/tmp", "tmpfs", "tmpfs", 1)
            if path == model.directory
            else hard_links.Mount("/", "ext4", "/dev/sda1", 2)
        ),
    )
    error = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    why = hard_links.why_not(error, str(model.local), model.directory)
    assert "in /tmp, which is in memory (tmpfs)" in why and "systemctl mask tmp.mount" in why


def test_shard_that_is_shorter_than_its_header_says_is_named(model: Model) -> None:
    whole = (5).to_bytes(8, "little") + b"{}   "
    blob = model.hub / "models--org--m" / "blobs" / "one.safetensors"
    blob.write_bytes(whole[:-1])
    with pytest.raises(Unmet, match=r"one.safetensors \(12 bytes; it ends inside its header"):
        model.compose()
    blob.write_bytes(whole + b"x")
    with pytest.raises(Unmet, match=r"one.safetensors \(14 bytes, its header says 13"):
        model.compose()


def test_small_file_that_is_not_what_its_blob_is_named_for_is_named(model: Model) -> None:
    name = "9e26dfeeb6e641a33dae4961196235bdb965b21b"  # git hash-object of "{}"
    blobs = model.hub / "models--org--m" / "blobs"
    (blobs / name).write_text("{}")
    (model.snapshot / "config.json").unlink()
    (model.snapshot / "config.json").symlink_to(f"../../blobs/{name}")
    model.compose()
    (blobs / name).write_text("")
    with pytest.raises(Unmet, match=r"config.json \(0 bytes that aren't those of its blob"):
        model.compose()


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev,
    reason="needs two file systems",
)
def test_file_systems_that_differ_are_met_as_they_are(model: Model) -> None:
    far = Path("/dev/shm") / f"pyinfra-vllm-test-{os.getpid()}"
    far.write_text("rows")
    try:
        model.lay_manifest(local_files=[{"host": str(far), "name": "two.safetensors"}])
        with pytest.raises(Unmet, match="different file systems, so no hard link can join them"):
            model.compose()
    finally:
        far.unlink()


def test_directory_outside_of_the_composed_root_is_refused(model: Model) -> None:
    model.lay_manifest(directory="/etc")
    with pytest.raises(Unmet, match="is not below"):
        model.compose()
