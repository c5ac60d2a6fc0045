"""Each operation applied twice: all changed, then nothing; one thing broken, only that changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from local.conftest import Apply
from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations import agent, composed_model, release, unit
from pyinfra_vllm.release import Release

OPERATIONS = (agent.installed, release.staged, composed_model.linked, unit.installed)
NAMES = ["agent.installed", "release.staged", "composed_model.linked", "unit.installed"]


@pytest.fixture
def applied(local_release: Release, apply: Apply) -> Release:
    assert apply(local_release, *OPERATIONS) == dict.fromkeys(NAMES, True)
    return local_release


def changed(applied: dict[str, bool]) -> list[str]:
    return [name for name, change in applied.items() if change]


def test_the_second_run_changes_nothing(applied: Release, apply: Apply) -> None:
    assert changed(apply(applied, *OPERATIONS)) == []


def test_the_composed_model_is_links_of_both_kinds(applied: Release) -> None:
    composed = Path(applied.composed_directory or "")
    local = applied.content.recipe.composed_model.local_files[0].host  # type: ignore[union-attr]
    assert (composed / "model-00002-of-00002.safetensors").stat().st_ino == Path(
        local
    ).stat().st_ino
    assert (composed / "config.json").is_symlink()
    assert (composed / "config.json").read_text() == "{}"


def test_the_unit_is_enabled_and_not_started(applied: Release, tmp_path: Path) -> None:
    calls = (tmp_path / "bin" / "systemctl.log").read_text().splitlines()
    assert [call for call in calls if not call.startswith("show")] == [
        "daemon-reload",
        "--quiet enable vllm-main.service",
    ]


@pytest.mark.parametrize("file", ["launch.json", "command.txt", "model.manifest", "seccomp.json"])
@pytest.mark.parametrize("how", ["edited", "missing", "mode", "link"])
def test_a_broken_release_file_is_repaired_alone(
    applied: Release, apply: Apply, file: str, how: str
) -> None:
    path = Path(applied.directory) / file
    text = path.read_text()
    if how == "edited":
        path.write_text(text + "x")
    elif how == "mode":
        path.chmod(0o600)
    else:
        path.unlink()
        if how == "link":
            path.symlink_to("/dev/null")
    assert changed(apply(applied, *OPERATIONS)) == ["release.staged"]
    assert path.read_text() == text
    assert not path.is_symlink()
    assert changed(apply(applied, *OPERATIONS)) == []


def test_a_stranger_among_the_release_files_is_removed(applied: Release, apply: Apply) -> None:
    stranger = Path(applied.directory) / "notes"
    stranger.write_text("x")
    assert changed(apply(applied, *OPERATIONS)) == ["release.staged"]
    assert not stranger.exists()


@pytest.mark.parametrize(
    "how", ["gone", "emptied", "foreign file", "other target", "copy", "file for link"]
)
def test_a_broken_composed_model_is_repaired_alone(
    applied: Release, apply: Apply, how: str
) -> None:
    composed = Path(applied.composed_directory or "")
    shard = composed / "model-00002-of-00002.safetensors"
    if how == "gone":
        shutil.rmtree(composed)
    elif how == "emptied":
        for entry in composed.iterdir():
            entry.unlink()
    elif how == "foreign file":
        (composed / "extra").write_text("x")
    elif how == "copy":
        content = shard.read_bytes()
        shard.unlink()
        shard.write_bytes(content)
    else:
        link = composed / "config.json"
        link.unlink()
        if how == "other target":
            link.symlink_to("/etc/hostname")
        else:
            link.write_text("{}")
    assert changed(apply(applied, *OPERATIONS)) == ["composed_model.linked"]
    assert changed(apply(applied, *OPERATIONS)) == []


def test_an_old_agent_is_replaced(applied: Release, apply: Apply) -> None:
    Path(paths.AGENT).write_bytes(b"old")
    assert changed(apply(applied, *OPERATIONS)) == ["agent.installed"]


def test_an_edited_unit_is_repaired_and_systemd_reloaded(
    applied: Release, apply: Apply, tmp_path: Path
) -> None:
    unit_file = Path(paths.UNIT_ROOT, "vllm-main.service")
    unit_file.write_text(unit_file.read_text() + "# hand\n")
    log = tmp_path / "bin" / "systemctl.log"
    log.unlink()
    assert changed(apply(applied, *OPERATIONS)) == ["unit.installed"]
    assert "daemon-reload" in log.read_text()


def test_a_disabled_unit_is_enabled_without_a_reload(
    applied: Release, apply: Apply, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "enabled").unlink()
    log = tmp_path / "bin" / "systemctl.log"
    log.unlink()
    assert changed(apply(applied, *OPERATIONS)) == ["unit.installed"]
    assert "daemon-reload" not in log.read_text()


def test_the_diff_shows_what_will_change(
    applied: Release, apply: Apply, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(applied.directory) / "launch.json"
    path.write_text(path.read_text().replace('"rank": 0', '"rank": 7'))
    with caplog.at_level("INFO", logger="pyinfra"):
        apply(applied, *OPERATIONS, diff=True)
    assert f"Will modify {path}" in caplog.text
    assert '-   "rank": 7,' in caplog.text
    assert '+   "rank": 0,' in caplog.text


def test_nothing_temporary_is_left(applied: Release, node_root: Path) -> None:
    left = [name for _, _, files in os.walk(node_root) for name in files if "partial" in name]
    assert left == []
