"""The directory of a composed model: built, left alone, repaired."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_model import Model
from pyinfra_vllm.agent import compose, paths
from pyinfra_vllm.agent.errors import Unmet


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    return Model(tmp_path)


def test_directory_has_absolute_symlinks_and_the_inode_of_the_local_file(model: Model) -> None:
    assert model.compose() == f"{model.directory}: 5 links made"
    assert (model.directory / "config.json").readlink() == model.snapshot / "config.json"
    assert (model.directory / "sub" / "notes.txt").read_text() == "x"
    two = model.directory / "two.safetensors"
    assert not two.is_symlink() and two.samefile(model.local)


def test_directory_that_is_right_is_left_alone(model: Model) -> None:
    model.compose()
    before = model.directory.stat()
    assert "as they should be" in model.compose()
    assert (model.directory.stat().st_ino, model.directory.stat().st_ctime_ns) == (
        before.st_ino,
        before.st_ctime_ns,
    )


def _wrong_target(model: Model) -> None:
    (model.directory / "config.json").unlink()
    (model.directory / "config.json").symlink_to("/elsewhere")


def _copy_for_link(model: Model) -> None:
    (model.directory / "two.safetensors").unlink()
    (model.directory / "two.safetensors").write_text("rows of this rank")


def _symlink_for_hard_link(model: Model) -> None:
    (model.directory / "two.safetensors").unlink()
    (model.directory / "two.safetensors").symlink_to(model.local)


def _replaced_local_file(model: Model) -> None:
    model.local.unlink()
    model.local.write_text("newer rows")


def _stranger(model: Model) -> None:
    (model.directory / "extra.safetensors").write_text("x")


def _empty_folder(model: Model) -> None:
    (model.directory / "empty").mkdir()


def _missing(model: Model) -> None:
    (model.directory / "sub" / "notes.txt").unlink()


def _regular_file_for_directory(model: Model) -> None:
    model.directory.rename(model.directory.with_name("aside"))
    model.directory.write_text("x")


@pytest.mark.parametrize(
    "harm",
    [
        _wrong_target,
        _copy_for_link,
        _symlink_for_hard_link,
        _replaced_local_file,
        _stranger,
        _empty_folder,
        _missing,
        _regular_file_for_directory,
    ],
)
def test_every_wrong_state_is_repaired(model: Model, harm: Any) -> None:
    model.compose()
    harm(model)
    assert "links made" in model.compose()
    assert "as they should be" in model.compose()
    assert (model.directory / "two.safetensors").samefile(model.local)


def test_directory_that_a_container_may_have_mounted_is_moved_away_not_emptied(
    model: Model,
) -> None:
    model.compose()
    with_mount = os.open(model.directory, os.O_RDONLY)
    _stranger(model)
    model.compose()
    assert "config.json" in os.listdir(with_mount)  # noqa: PTH208
    os.close(with_mount)


def test_sweep_leaves_the_release_that_starts(model: Model) -> None:
    model.compose()
    _stranger(model)
    model.compose()
    other = model.directory.with_name("other")
    other.mkdir()
    compose.sweep(model.directory.parent, "r1")
    assert _names(model.directory.parent) == [".lock", "r1"]
    assert "as they should be" in model.compose()


def test_unfinished_directory_of_a_killed_build_is_replaced(model: Model) -> None:
    fresh = model.directory.with_name(".r1.new")
    fresh.mkdir(parents=True)
    (fresh / "half").touch()
    model.compose()
    assert not fresh.exists() and not (model.directory / "half").exists()


def _lay_copy(model: Model) -> None:
    local = {"host": str(model.local), "name": "two.safetensors", "copy": True}
    model.lay_manifest(local_files=[local])


def test_copy_that_the_recipe_allows_keeps_holes_and_is_made_once(model: Model) -> None:
    with model.local.open("wb") as file:
        file.truncate(1 << 26)
        os.pwrite(file.fileno(), b"rows", 1 << 25)
    _lay_copy(model)
    model.compose()
    two = model.directory / "two.safetensors"
    assert two.stat().st_nlink == 1 and two.stat().st_size == 1 << 26
    assert two.stat().st_blocks * 512 < 1 << 20
    assert two.read_bytes()[1 << 25 :][:4] == b"rows"
    assert "as they should be" in model.compose()


def test_copy_of_a_file_that_changed_is_made_again(model: Model) -> None:
    _lay_copy(model)
    model.compose()
    model.local.write_text("newer rows")
    assert "links made" in model.compose()
    assert (model.directory / "two.safetensors").read_text() == "newer rows"


def test_copy_without_room_is_refused_with_both_figures(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lay_copy(model)
    full = os.statvfs_result((4096, 4096, 10, 1, 1, 10, 10, 10, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(Unmet, match=r"no room for a copy of .*takes 17 B, 4.096 KB are free"):
        model.compose()
    assert _names(model.directory.parent) == [".lock"]
