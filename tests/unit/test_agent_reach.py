"""A container follows links as far as it has mounts: told before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.agent import reach
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.launch import Mount
from pyinfra_vllm.agent.links import Link


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A cache whose files are links to blobs, as hf download makes it."""
    folder = tmp_path / "hub" / "models--a--b"
    (folder / "snapshots" / "r" / "sub").mkdir(parents=True)
    (folder / "blobs").mkdir()
    (folder / "blobs" / "1").write_text("x")
    (folder / "snapshots" / "r" / "config.json").symlink_to("../../blobs/1")
    (folder / "snapshots" / "r" / "sub" / "notes").symlink_to("../../../blobs/1")
    return tmp_path / "hub"


def _mounts(*paths: Path) -> list[Mount]:
    return [Mount(str(path), str(path), read_only=True, create=False) for path in paths]


def _why(link: Path, *mounts: Mount) -> str:
    try:
        reach.check({"name": Link("symbolic", str(link))}, mounts)
    except Unmet as unmet:
        return str(unmet)
    return ""


def test_links_of_the_cache_are_inside_its_mount(hub: Path) -> None:
    snapshot = hub / "models--a--b" / "snapshots" / "r"
    for name in ("config.json", "sub/notes"):
        assert _why(snapshot / name, *_mounts(hub)) == ""


def test_link_out_of_the_mounts_is_named_with_where_it_leads(hub: Path, tmp_path: Path) -> None:
    other = tmp_path / "disk2" / "blob"
    other.parent.mkdir()
    other.write_text("x")
    link = hub / "models--a--b" / "snapshots" / "r" / "far.bin"
    link.symlink_to(other)
    assert f"name (it leads to {other})" in _why(link, *_mounts(hub))
    assert f"it sees {hub} and nothing else" in _why(link, *_mounts(hub))
    assert _why(link, *_mounts(hub, other.parent)) == ""


def test_folder_of_the_model_that_is_a_link_counts(hub: Path, tmp_path: Path) -> None:
    (hub / "models--a--b").rename(tmp_path / "moved")
    (hub / "models--a--b").symlink_to(tmp_path / "moved")
    config = hub / "models--a--b" / "snapshots" / "r" / "config.json"
    assert config.exists()
    assert f"it leads to {tmp_path}/moved" in _why(config, *_mounts(hub))


def test_cache_that_is_a_link_itself_is_followed_by_docker(hub: Path, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(hub)
    config = tmp_path / "name" / "models--a--b" / "snapshots" / "r" / "config.json"
    assert _why(config, *_mounts(tmp_path / "name")) == ""


def test_link_to_another_place_of_the_node_is_followed_by_its_place_inside(hub: Path) -> None:
    """Where target and source differ, a link that is right on the node is wrong inside."""
    link = hub / "models--a--b" / "snapshots" / "r" / "whole.json"
    link.symlink_to(hub / "models--a--b" / "blobs" / "1")
    inside = Mount(str(hub), "/root/hub", read_only=True, create=False)
    name = Path("/root/hub/models--a--b/snapshots/r")
    assert _why(name / "config.json", inside) == ""
    assert f"it leads to {hub}/models--a--b/blobs/1" in _why(name / "whole.json", inside)


@pytest.mark.parametrize("target", ["circle", "../r/circle", "./circle"])
def test_circle_of_links_ends(hub: Path, target: str) -> None:
    link = hub / "models--a--b" / "snapshots" / "r" / "circle"
    link.symlink_to(target)
    assert "its links lead in a circle" in _why(link, *_mounts(hub))


def test_link_to_nothing_is_named(hub: Path) -> None:
    link = hub / "models--a--b" / "snapshots" / "r" / "lost"
    link.symlink_to("../../blobs/2")
    assert "blobs/2: No such file or directory" in _why(link, *_mounts(hub))


def test_of_many_wrong_links_three_are_shown(hub: Path) -> None:
    plan = {f"n{n}": Link("symbolic", f"/elsewhere/{n}") for n in range(5)}
    with pytest.raises(Unmet, match=r"n2 \(it leads to /elsewhere/2\) and 2 more; it sees"):
        reach.check(plan, _mounts(hub))


def test_hard_links_and_copies_lie_in_the_mount_itself(hub: Path) -> None:
    plan = {"a": Link("hard", "/var/tmp/a"), "b": Link("copy", "/var/tmp/b")}
    reach.check(plan, _mounts(hub))
