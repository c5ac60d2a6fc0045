from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pyinfra_vllm.lab import cache
from pyinfra_vllm.lab.shell import Steps, write


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(cache, "STATE", tmp_path / "state")
    monkeypatch.setattr("pyinfra_vllm.lab.shell.LOCKS", tmp_path / "locks")
    (tmp_path / "cache").mkdir()
    return tmp_path


def make(path: Path) -> None:
    path.write_text("made")


def test_what_is_there_is_not_made_again(folders: Path) -> None:
    path = cache.ensure(Steps(), folders / "cache/a", make)
    path.write_text("as it was")
    assert cache.ensure(Steps(), path, make).read_text() == "as it was"


def test_what_fails_to_be_made_is_tried_again(folders: Path) -> None:
    def fail(path: Path) -> None:
        raise OSError("no")

    path = folders / "cache/a"
    with pytest.raises(OSError, match="no"):
        cache.ensure(Steps(), path, fail)
    assert cache.ensure(Steps(), path, make).read_text() == "made"


def test_a_root_in_the_making_with_old_dates_is_left_alone(folders: Path) -> None:
    root = folders / "cache/root.new"
    root.mkdir()
    os.utime(root, (0, 0))
    cache.ensure(Steps(), folders / "cache/a", make)
    assert root.is_dir()


def test_what_nothing_uses_for_a_month_goes_and_a_labs_root_stays(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "used"):
        write(folders / "cache" / name / "file", "x")
    (folders / "state/lab").mkdir(parents=True)
    (folders / "state/lab/lower").symlink_to(folders / "cache/used")
    later = time.time() + 31 * 86400
    monkeypatch.setattr(time, "time", lambda: later)
    cache._prune(30)
    assert [path.name for path in (folders / "cache").iterdir()] == ["used"]
