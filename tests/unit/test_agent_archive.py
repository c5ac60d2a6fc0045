"""The agent's archive and what systemd reads."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent_archive import archive, archive_digest
from pyinfra_vllm.rendering import render

_GOLDEN = Path(__file__).parent / "golden"


def _unit(gang: str = "main") -> str:
    return render("systemd/vllm.service.j2", gang=gang, paths=paths)


def test_archive_is_equal_byte_for_byte_wherever_it_is_made(tmp_path: Path) -> None:
    package = Path(paths.__file__).parents[1]
    shutil.copytree(package / "agent", tmp_path / "p" / "agent")
    shutil.copy(package / "agent_archive.py", tmp_path / "p")
    script = "import agent_archive as a; print(a.archive_digest())"
    again = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "p",
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout.strip() == archive_digest()


def test_archive_has_fixed_order_times_and_modes() -> None:
    members = zipfile.ZipFile(io.BytesIO(archive())).infolist()
    names = [member.filename for member in members]
    assert names == sorted(names) and "__main__.py" in names
    assert {member.date_time for member in members} == {(1980, 1, 1, 0, 0, 0)}
    assert {member.external_attr >> 16 for member in members} == {0o100644}
    assert {member.compress_type for member in members} == {zipfile.ZIP_STORED}
    assert archive().startswith(b"#!/usr/bin/python3")


def test_archive_tests_itself_and_says_its_errors_without_a_traceback(tmp_path: Path) -> None:
    pyz = tmp_path / "agent.pyz"
    pyz.write_bytes(archive())
    run = [sys.executable, "-I", str(pyz)]
    assert subprocess.run([*run, "selftest"], capture_output=True, check=False).returncode == 0
    broken = subprocess.run(
        [*run, "compose", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert broken.returncode == 75
    assert broken.stderr == f"{tmp_path}/model.manifest: is not there; run the deploy\n"


def test_no_archive_tests_itself_well_with_a_module_that_is_no_python(tmp_path: Path) -> None:
    for name in zipfile.ZipFile(io.BytesIO(archive())).namelist():
        if not name.endswith(("agent/ledger.py", "agent/engram_job.py", "agent/alert.py")):
            continue
        pyz = tmp_path / "agent.pyz"
        with (
            zipfile.ZipFile(io.BytesIO(archive())) as whole,
            zipfile.ZipFile(pyz, "w") as broken,
        ):
            for member in whole.namelist():
                broken.writestr(member, b"def" if member == name else whole.read(member))
        done = subprocess.run([sys.executable, "-I", str(pyz), "selftest"], capture_output=True)
        assert done.returncode != 0 and b"SyntaxError" in done.stderr, name


def test_removing_containers_needs_little_of_the_archive(tmp_path: Path) -> None:
    """It runs between two starts of a gang, and the archive has no compiled code."""
    pyz = tmp_path / "agent.pyz"
    pyz.write_bytes(archive())
    done = subprocess.run(
        [sys.executable, "-I", "-v", str(pyz), "remove", "main"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "docker is not installed" in done.stderr
    used = {
        line.split("'")[1] for line in done.stderr.splitlines() if line.startswith("import 'py")
    }
    assert "pyinfra_vllm.agent.docker" in used
    assert not {"pyinfra_vllm.agent.run", "pyinfra_vllm.agent.compose"} & used


def test_unit_is_as_reviewed() -> None:
    assert _unit() == (_GOLDEN / "vllm-main.service").read_text()


def test_rules_that_keep_ageing_away_are_as_reviewed() -> None:
    rendered = render("systemd/tmpfiles.conf.j2", gang="main", paths=paths)
    assert rendered == (_GOLDEN / "tmpfiles-pyinfra-vllm.conf").read_text()


def test_units_of_two_gangs_differ_in_the_name_only() -> None:
    assert _unit("other").replace("other", "main") == _unit()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path) -> None:
    for program in ("usr/bin/python3", "usr/bin/docker"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    unit = tmp_path / "etc" / "systemd" / "system" / paths.unit("main")
    unit.parent.mkdir(parents=True)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no"]
    verify += [f"--root={tmp_path}", f"/etc/systemd/system/{unit.name}"]
    unit.write_text(_unit())
    good = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    unit.write_text(_unit().replace("RestartSec", "RestartSecs"))
    assert subprocess.run(verify, capture_output=True, check=False).returncode != 0
