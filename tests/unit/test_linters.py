"""Linters as tests: of the Python code, of shell scripts, and of rendered Dockerfiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm import image_files
from pyinfra_vllm.image import build_of

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CODE = (".ci", "deploys", "inventory", "recipes", "templates", "tests")
PROFILES = [
    (image_dir, profile)
    for image_dir in image_files.known()
    for profile in (image_files.find(image_dir).profiles or [None])
]


def lint(*argv: str, given: bytes | None = None) -> None:
    program, *options = argv
    ran = subprocess.run([BIN / program, *options], input=given, capture_output=True, cwd=ROOT)
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode()


def test_steps_of_operations_are_made_in_one_place_that_explains_errors() -> None:
    files = (ROOT / "deploys").rglob("*.py")
    assert [path.name for path in files if "FunctionCommand(" in path.read_text()] == ["common.py"]


def shell_scripts() -> list[str]:
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(ROOT)) for path in files if is_shell(path))


def is_shell(path: Path) -> bool:
    with open(path, "rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith((b"/sh", b"bash", b" sh"))


def test_the_code_is_clean_for_ruff() -> None:
    lint("ruff", "check", ".")


def test_the_code_is_formatted() -> None:
    lint("ruff", "format", "--check", "--diff", ".")


def test_the_code_is_clean_for_mypy() -> None:
    lint("mypy")


def test_imports_point_one_way() -> None:
    lint("lint-imports")


def test_shell_scripts_are_clean_for_shellcheck() -> None:
    scripts = shell_scripts()
    assert ".ci/run" in scripts
    lint("shellcheck", "--severity=warning", *scripts)


@pytest.mark.parametrize(("image_dir", "profile"), PROFILES)
def test_rendered_dockerfiles_are_clean_for_hadolint(image_dir: str, profile: str | None) -> None:
    lint("hadolint", "-", given=build_of(image_dir, profile, "lint:1").files["Dockerfile"])
