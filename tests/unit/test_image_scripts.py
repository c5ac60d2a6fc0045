"""The scripts that run inside builds, run here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[2] / "templates" / "images"
FETCH = IMAGES / "glm53-jovian-r27" / "context" / "fetch_source.sh"
VERIFY = IMAGES / "shared" / "verify.py"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    argv = ["git", *who, "-C", str(folder), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for text in ("one", "two"):
        (folder / "file").write_text(text)
        git(folder, "add", "file")
        git(folder, "commit", "--quiet", "--message", text)
    return folder


def fetch(
    repository: Path, commit: str, tree: str, target: Path
) -> subprocess.CompletedProcess[str]:
    argv = ["bash", str(FETCH), f"file://{repository}", commit, tree, str(target)]
    return subprocess.run(argv, capture_output=True, text=True)


def test_a_source_is_fetched_at_its_commit(repository: Path, tmp_path: Path) -> None:
    commit, tree = git(repository, "rev-parse", "HEAD~1", "HEAD~1^{tree}").split()
    assert fetch(repository, commit, tree, tmp_path / "src").returncode == 0
    assert (tmp_path / "src" / "file").read_text() == "one"


def test_a_source_with_another_tree_is_refused(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    ran = fetch(repository, commit, "0" * 40, tmp_path / "src")
    assert ran.returncode != 0
    assert f"the profile says {'0' * 40}" in ran.stderr


def test_a_commit_that_is_not_there_is_refused(repository: Path, tmp_path: Path) -> None:
    assert fetch(repository, "1" * 40, "0" * 40, tmp_path / "src").returncode != 0


def test_a_branch_in_place_of_a_commit_is_refused(repository: Path, tmp_path: Path) -> None:
    branch = git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    assert fetch(repository, branch, tree, tmp_path / "src").returncode != 0


def test_verify_names_everything_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "vllm").write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    (tmp_path / "vllm").chmod(0o755)
    argv = [
        sys.executable, str(VERIFY),
        "--machine", "pdp11",
        "--python", "2.7",
        "--version", "pytest=0.1",
        "--version", "no-such-thing=1",
        "--import", "no_such_module",
    ]  # fmt: skip
    ran = subprocess.run(argv, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert ran.returncode == 1
    for finding in (
        "wanted pdp11",
        "wanted 2.7",
        "wanted 0.1",
        "no-such-thing isn't installed",
        "import no_such_module: ModuleNotFoundError",
        "vllm serve --help exits 3: broken",
    ):
        assert finding in ran.stderr
