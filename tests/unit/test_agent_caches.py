"""The compile caches of a node: on its own disk, and without what hangs a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_launch import launch_of
from pyinfra_vllm.agent import caches
from pyinfra_vllm.agent.errors import Unmet

MOUNTINFO = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "30 22 0:40 / /mnt/nas rw - nfs4 nas:/share rw\n"
    "31 30 8:2 / /mnt/nas/local rw - xfs /dev/sdb1 rw\n"
    "32 22 0:41 / /mnt/with\\040space rw - fuse.sshfs a:/ rw\n"
)


def cache(source: Path | str, **changes: Any) -> dict[str, Any]:
    return {
        "source": str(source),
        "target": "/root/.cache",
        "read_only": False,
        "create": True,
    } | changes


@pytest.fixture
def mountinfo(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTINFO)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/cache/x", "ext4"),
        ("/mnt/nas/cache", "nfs4"),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nasal", "ext4"),
        ("/mnt/nas/local/cache", "xfs"),
        ("/mnt/with space/x", "fuse.sshfs"),
    ],
)
def test_file_system_is_that_of_the_nearest_mount(mountinfo: Path, path: str, kind: str) -> None:
    assert caches.file_system(Path(path), mountinfo) == kind


@pytest.mark.parametrize("path", ["/mnt/nas/cache", "/mnt/with space/cache"])
def test_cache_on_a_file_server_is_refused(mountinfo: Path, path: str) -> None:
    with pytest.raises(Unmet, match=f"{path} is on a file server .* must be local"):
        caches.check_local(launch_of(mounts=[cache(path)]), mountinfo)


def test_only_what_the_engine_writes_must_be_local(mountinfo: Path) -> None:
    hub = cache("/mnt/nas/hub", read_only=True, create=False)
    caches.check_local(launch_of(mounts=[hub, cache("/var/cache/x")]), mountinfo)


def test_every_autotune_cache_goes_and_nothing_else(tmp_path: Path) -> None:
    one = tmp_path / "flashinfer" / caches.AUTOTUNE
    two = tmp_path / "a" / "b" / "c" / "d" / "e" / caches.AUTOTUNE
    kept = tmp_path / "flashinfer" / "cubins" / "x"
    for folder in (one, two, kept):
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
    launch = launch_of(mounts=[cache(tmp_path)])
    assert caches.clear_autotune(launch) == 2
    assert not one.exists()
    assert not two.exists()
    assert (kept / "file").exists()
    assert caches.clear_autotune(launch) == 0


def test_folders_of_others_are_not_searched(tmp_path: Path) -> None:
    theirs = tmp_path / caches.AUTOTUNE
    theirs.mkdir()
    hub = cache(tmp_path, create=False)
    assert caches.clear_autotune(launch_of(mounts=[hub])) == 0
    assert theirs.exists()


def test_a_cache_that_is_not_there_yet_is_none(tmp_path: Path) -> None:
    assert caches.clear_autotune(launch_of(mounts=[cache(tmp_path / "none")])) == 0
