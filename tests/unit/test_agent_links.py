"""The plan of a composed model, and the directory that is built from it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import compose, paths
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.links import Link, plan_links

_REVISION = "b" * 40


def _manifest(*snapshots: str, local_files: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "schema": 1,
        "directory": "/tmp/composed-models/main/x",
        "sources": [
            {"repo": f"org/{path[1:]}", "revision": _REVISION, "snapshot": path}
            for path in snapshots
        ],
        "local_files": [{"host": f, "name": f.rpartition("/")[2]} for f in local_files],
    }


def test_whole_snapshot_is_symlinked_and_local_files_are_hard_links_that_win() -> None:
    manifest = _manifest("/s", local_files=("/var/tmp/two",))
    plan = plan_links(manifest, {"/s": ["two", "config.json", "sub/tokenizer.json"]})
    assert plan == {
        "config.json": Link("symbolic", "/s/config.json"),
        "sub/tokenizer.json": Link("symbolic", "/s/sub/tokenizer.json"),
        "two": Link("hard", "/var/tmp/two"),
    }


def test_plan_is_sorted_whatever_the_order_of_the_entries() -> None:
    assert list(plan_links(_manifest("/s"), {"/s": ["b", "c", "a"]})) == ["a", "b", "c"]


def test_entry_of_two_sources_is_refused_and_both_are_named() -> None:
    with pytest.raises(Unmet, match=r"README.md is in org/s and in org/t"):
        plan_links(_manifest("/s", "/t"), {"/s": ["README.md"], "/t": ["README.md"]})


@pytest.mark.parametrize("entry", ["../x", "/etc/passwd", "a/../../x", "", "a//b", "./x"])
def test_entry_that_would_leave_the_directory_is_refused(entry: str) -> None:
    with pytest.raises(Unmet, match="would leave"):
        plan_links(_manifest("/s"), {"/s": [entry]})


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_local_file_name_that_would_leave_the_directory_is_refused(name: str) -> None:
    manifest = _manifest("/s")
    manifest["local_files"] = [{"host": "/var/tmp/x", "name": name}]
    with pytest.raises(Unmet):
        plan_links(manifest, {"/s": ["config.json"]})


def test_two_local_files_of_one_name_are_refused() -> None:
    manifest = _manifest("/s", local_files=("/a/x", "/b/x"))
    with pytest.raises(Unmet, match="/a/x and /b/x have one name"):
        plan_links(manifest, {"/s": []})


def test_file_where_another_source_needs_a_folder_is_refused() -> None:
    with pytest.raises(Unmet, match="sub is a file, and sub/x needs it"):
        plan_links(_manifest("/s", "/t"), {"/s": ["sub"], "/t": ["sub/x"]})


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Model:
    """A snapshot, a local file and a release folder below a root that stands for /."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hub = root / "nas" / "hub"
        folder = self.hub / "models--org--m"
        self.snapshot = folder / "snapshots" / _REVISION
        (self.snapshot / "sub").mkdir(parents=True)
        (folder / "blobs").mkdir()
        index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
        self.add("config.json", "{}")
        self.add("one.safetensors", "1")
        self.add("two.safetensors", "zeros")
        self.add("model.safetensors.index.json", json.dumps(index))
        self.add("sub/notes.txt", "x")
        self.local = root / "local" / "two.safetensors"
        self.local.parent.mkdir()
        self.local.write_text("rows of this rank")
        self.directory = root / "tmp" / "composed-models" / "main" / "r1"
        self.release = root / "release"
        self.release.mkdir()
        self.lay_manifest()

    def add(self, name: str, text: str) -> None:
        blob = self.hub / "models--org--m" / "blobs" / name.replace("/", "_")
        blob.write_text(text)
        path = self.snapshot / name
        path.symlink_to(os.path.relpath(blob, path.parent))

    def lay_manifest(self, **changes: Any) -> None:
        manifest = _manifest(str(self.snapshot), local_files=(str(self.local),))
        manifest["sources"][0]["repo"] = "org/m"
        manifest["directory"] = str(self.directory)
        (self.release / paths.MANIFEST).write_text(json.dumps(manifest | changes))

    def compose(self) -> str:
        return compose.compose(self.release)


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


def test_missing_snapshot_names_the_command_that_fetches_it(model: Model) -> None:
    model.snapshot.rename(model.snapshot.with_name("other"))
    with pytest.raises(Unmet) as unmet:
        model.compose()
    expected = f"HF_HUB_CACHE={model.hub} hf download org/m --revision {_REVISION}"
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
