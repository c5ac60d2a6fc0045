"""Placing files: whole or not at all, and only what was said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyinfra_vllm import placement


def place(actions: Sequence[placement.Action]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-"],
        input=placement.script(actions),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_new_tree_has_exactly_its_files(tmp_path: Path) -> None:
    target = tmp_path / "releases" / "d1"
    assert place([placement.tree(str(target), {"a": "1\n", "b": "2\n"})]).returncode == 0
    assert {p.name: p.read_text() for p in target.iterdir()} == {"a": "1\n", "b": "2\n"}
    assert {p.stat().st_mode & 0o777 for p in target.iterdir()} == {0o644}
    assert [p.name for p in target.parent.iterdir()] == ["d1"]


@pytest.mark.parametrize("wrong", ["changed", "missing", "stranger", "link", "directory", "mode"])
def test_a_wrong_tree_is_repaired(tmp_path: Path, wrong: str) -> None:
    target = tmp_path / "d1"
    action = placement.tree(str(target), {"a": "1\n", "b": "2\n"})
    place([action])
    victim = target / "a"
    if wrong == "changed":
        victim.write_text("other")
    elif wrong == "stranger":
        (target / "x").mkdir()
    elif wrong == "mode":
        victim.chmod(0o600)
    else:
        victim.unlink()
        if wrong == "link":
            victim.symlink_to("/etc/hostname")
        if wrong == "directory":
            victim.mkdir()
    assert place([action]).returncode == 0
    assert {p.name: p.read_text() for p in target.iterdir()} == {"a": "1\n", "b": "2\n"}
    assert victim.stat().st_mode & 0o777 == 0o644
    assert not victim.is_symlink()


def test_leftovers_of_a_cut_placement_are_replaced(tmp_path: Path) -> None:
    partial = tmp_path / ".d1.partial"
    partial.mkdir()
    (partial / "half").write_text("half")
    assert place([placement.tree(str(tmp_path / "d1"), {"a": "1"})]).returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d1"]
    assert [p.name for p in (tmp_path / "d1").iterdir()] == ["a"]


def test_a_file_that_fails_its_check_is_never_switched_in(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_text("old")
    check = ["sh", "-c", "echo broken >&2; exit 3"]
    done = place([placement.file(str(path), b"new", check=check)])
    assert done.returncode == 1
    assert "fails its own test here: broken" in done.stderr
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["program"]


def test_a_link_is_switched_by_rename(tmp_path: Path) -> None:
    link = tmp_path / "current"
    place([placement.link(str(link), "releases/one")])
    place([placement.link(str(link), "releases/two")])
    assert str(link.readlink()) == "releases/two"


def test_a_directory_in_the_place_of_a_link_is_not_removed(tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.mkdir()
    done = place([placement.link(str(link), "releases/one")])
    assert done.returncode == 1
    assert "is a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_removing_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    assert place([placement.remove(str(tmp_path / "link"))]).returncode == 0
    assert kept.is_dir()
    assert not (tmp_path / "link").is_symlink()
