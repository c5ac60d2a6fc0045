"""Files, releases, links and snapshots as they are on the node."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from pyinfra_vllm.node.collect import cache, files, gang, system
from pyinfra_vllm.node.collect.parts import Unavailable

A, B = "a" * 64, "b" * 64


def write(path: Path, text: str = "x\n", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_is_told_with_mode_owner_digest_and_text(tmp_path: Path) -> None:
    state = files.file_state(str(write(tmp_path / "unit")), text=True)
    assert (state["type"], state["mode"], state["text"]) == ("file", "0644", "x\n")
    assert state["sha256"] == hashlib.sha256(b"x\n").hexdigest()
    assert state["links"] == 1 and state["size"] == 2


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_text_of_a_file_that_is_closed_to_others_stays_on_the_node(
    tmp_path: Path, mode: int
) -> None:
    state = files.file_state(str(write(tmp_path / "secret", "key", mode)), text=True)
    assert "text" not in state


def test_text_that_is_long_or_no_utf8_is_left_out(tmp_path: Path) -> None:
    long = write(tmp_path / "long", "x" * (files.TEXT_LIMIT + 1))
    assert "text" not in files.file_state(str(long), text=True)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert files.file_state(str(tmp_path / "binary"), text=True)["text"] is None


def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/nowhere/at/all")
    state = files.file_state(str(tmp_path / "link"), text=True)
    assert (state["type"], state["target"]) == ("link", "/nowhere/at/all")


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "file")
    for path in (tmp_path / "absent", tmp_path / "file" / "below"):
        assert files.file_state(str(path), text=True) == {"exists": False, "type": "missing"}


def test_a_composed_model_is_told_link_by_link(tmp_path: Path) -> None:
    local = write(tmp_path / "local")
    model = tmp_path / "model"
    (model / "sub").mkdir(parents=True)
    (model / "config.json").symlink_to("/hub/config.json")
    (model / "sub" / "x.json").symlink_to("/hub/sub/x.json")
    os.link(local, model / "shard.safetensors")
    found = files.composed([str(model)])[str(model)]
    assert found["exists"] and found["device"] == tmp_path.stat().st_dev
    assert list(found["entries"]) == ["config.json", "shard.safetensors", "sub/x.json"]
    assert found["entries"]["sub/x.json"]["target"] == "/hub/sub/x.json"
    shard = found["entries"]["shard.safetensors"]
    assert (shard["type"], shard["inode"]) == ("file", local.stat().st_ino)


def test_the_device_of_a_composed_model_is_known_before_it_exists(tmp_path: Path) -> None:
    path = str(tmp_path / "not" / "yet")
    assert files.composed([path])[path] == {
        "exists": False,
        "device": tmp_path.stat().st_dev,
        "entries": {},
    }
    assert system.disks([path])[path]["device"] == tmp_path.stat().st_dev


def test_what_is_removed_while_it_is_read_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "model" / "config.json")

    def vanishes(*_: object) -> str:
        path.unlink()
        raise FileNotFoundError

    monkeypatch.setattr(files, "sha256", vanishes)
    assert files.file_state(str(path), text=True)["exists"] is False
    walked = [("gone.json", str(path)), ("gone/too.json", str(path / "too"))]
    monkeypatch.setattr(files, "walk", lambda directory: walked)
    model = str(path.parent)
    assert files.composed([model])[model]["entries"] == {}


def test_releases_are_told_with_current_and_what_else_lies_there(tmp_path: Path) -> None:
    home = tmp_path / "main"
    for digest in (A, B):
        write(home / "releases" / digest / "launch.json", digest)
    write(home / "releases" / f"{A}.partial" / "launch.json")
    write(home / "releases" / "notes")
    write(home / "secrets.env", "KEY=verysecret", 0o600)
    (home / "current").symlink_to(f"releases/{A}")
    found = gang.releases(str(tmp_path), "main", [])
    assert found["current"] == f"releases/{A}"
    assert list(found["releases"]) == [A, B]
    assert found["releases"][B]["files"]["launch.json"]["text"] == B
    assert found["strangers"] == [f"releases/{A}.partial", "releases/notes"]
    assert sorted(found["entries"]) == ["current", "releases", "secrets.env"]
    assert set(found["entries"]["secrets.env"]) & {"text", "sha256"} == set()


def test_text_is_limited_to_the_current_release_and_those_asked_for(tmp_path: Path) -> None:
    for digest in (A, B, "c" * 64):
        write(tmp_path / "main" / "releases" / digest / "launch.json")
    (tmp_path / "main" / "current").symlink_to(f"releases/{A}")
    found = gang.releases(str(tmp_path), "main", [B])["releases"]
    with_text = [digest for digest in found if "text" in found[digest]["files"]["launch.json"]]
    assert with_text == [A, B]


def test_a_node_without_releases_has_none(tmp_path: Path) -> None:
    found = gang.releases(str(tmp_path), "main", [])
    assert found == {"current": None, "releases": {}, "strangers": [], "entries": {}}


def test_current_that_is_no_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "main" / "current").mkdir(parents=True)
    with pytest.raises(Unavailable, match="current is no link"):
        gang.releases(str(tmp_path), "main", [])


def test_the_agent_is_told_with_the_status_it_wrote(tmp_path: Path) -> None:
    program = write(tmp_path / "agent.pyz", "zip", 0o755)
    status = write(tmp_path / "status.json", '{"phase": "serving"}')
    found = gang.agent(str(program), str(status))
    assert found["sha256"] == hashlib.sha256(b"zip").hexdigest()
    assert found["status"] == {"phase": "serving"}


def test_no_agent_is_no_error(tmp_path: Path) -> None:
    found = gang.agent(str(tmp_path / "a"), str(tmp_path / "s"))
    assert found == {"sha256": None, "mode": None, "status": None}


def test_what_systemd_shows_becomes_numbers_flags_and_lists() -> None:
    state = gang.unit_state(
        {
            "LoadState": "loaded",
            "ActiveState": "active",
            "NeedDaemonReload": "yes",
            "DropInPaths": "/etc/a.conf /etc/b.conf",
            "MainPID": "17",
            "ActiveEnterTimestampMonotonic": "0",
            "StatusText": "serving: 12 = a dozen",
        }
    )
    assert state["needs_reload"] is True and state["main_pid"] == 17
    assert state["drop_ins"] == ["/etc/a.conf", "/etc/b.conf"]
    assert state["active_since"] is None
    assert state["status_text"] == "serving: 12 = a dozen"


class Hub:
    """A Hugging Face cache with one snapshot."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "models--org--name"
        self.snapshot = self.home / "snapshots" / "c0ffee"
        self.snapshot.mkdir(parents=True)
        write(self.home / "refs" / "main", "c0ffee\n")

    def add(self, name: str, blob: str, text: str = "x") -> None:
        write(self.home / "blobs" / blob, text)
        path = self.snapshot / name
        path.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * (2 + name.count("/"))
        path.symlink_to(f"{up}blobs/{blob}")


def test_a_snapshot_is_found_by_ref_and_by_commit(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.add("config.json", "b1", "{}")
    for revision in (None, "main", "c0ffee"):
        found = cache.snapshot(str(tmp_path), "org/name", revision)
        assert found["exists"] and found["revision"] == "c0ffee"
        assert found["path"] == str(hub.snapshot)
        assert found["missing"] == []
        assert found["entries"] == {
            "config.json": {"target": "../../blobs/b1", "blob": "b1", "size": 2}
        }


def test_entries_of_sub_folders_and_plain_files_are_found(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.add("original/params.json", "b2")
    write(hub.snapshot / "copied.json", "123")
    entries = cache.snapshot(str(tmp_path), "org/name", None)["entries"]
    assert entries["original/params.json"]["blob"] == "b2"
    assert entries["copied.json"] == {"target": None, "blob": None, "size": 3}


def test_a_blob_that_is_not_there_is_missing(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.add("config.json", "b1")
    (hub.home / "blobs" / "b1").unlink()
    found = cache.snapshot(str(tmp_path), "org/name", None)
    assert found["missing"] == ["config.json"]
    assert found["entries"]["config.json"]["size"] is None


def test_shards_that_the_index_names_and_nobody_fetched_are_missing(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    weights = {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}
    hub.add("model.safetensors.index.json", "b1", json.dumps({"weight_map": weights}))
    hub.add("model-1.safetensors", "b2")
    assert cache.snapshot(str(tmp_path), "org/name", None)["missing"] == ["model-2.safetensors"]


def test_a_model_that_was_never_fetched_is_no_error(tmp_path: Path) -> None:
    unpinned = cache.snapshot(str(tmp_path), "org/absent", None)
    assert (unpinned["exists"], unpinned["revision"]) == (False, None)
    pinned = cache.snapshot(str(tmp_path), "org/absent", "c0ffee")
    assert (pinned["exists"], pinned["revision"]) == (False, "c0ffee")
    assert cache.snapshot("/nowhere", "org/absent", None)["hub_exists"] is False
