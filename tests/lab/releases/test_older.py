"""Nodes that an older commit of this project has deployed, and an agent that is broken."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths

from ..stub.gang import HERE, LAB, ROOT, Gang
from .changing import begin, serving, unlock, variant

pytestmark = pytest.mark.lab

OLDER = "46eefee"
"""The last commit whose wanted.json knows of no trial."""


def run(gang: Gang, source: Path, *data: str) -> tuple[int, str]:
    """Exit code and output of the main deploy as another tree of the project has it."""
    words = [word for pair in data for word in ("--data", pair)]
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("pyinfra")), "-y", LAB,
            str(source / "deploys" / "recipe.py"), *words,
        ],
        cwd=HERE,
        env={
            **os.environ,
            "PYTHONPATH": str(source / "deploys"),
            "PYINFRA_VLLM_LAB": gang.layout.name,
            "PYINFRA_PROGRESS": "off",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.fixture(autouse=True)
def after(gang: Gang) -> Iterator[None]:
    yield
    unlock(gang)
    begin(gang)


def agents(gang: Gang) -> set[str]:
    return {gang.ask(rank, f"sha256sum < {paths.AGENT}") for rank in range(4)}


def test_broken_agent_is_never_installed(gang: Gang, tmp_path: Path) -> None:
    old, before = begin(gang), agents(gang)
    for name in ("deploys", "recipes", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name)
    with (tmp_path / "deploys" / "pyinfra_vllm" / "agent" / "vitals.py").open("a") as source:
        source.write("\ndef (\n")
    recipe = variant(tmp_path, "stub-broken-4x", STUB_NEXT="3")
    code, output = run(gang, tmp_path, recipe)
    assert code == 1 and "not installed, it fails its own test here" in output
    assert agents(gang) == before
    assert serving(gang) == old


@pytest.mark.soak
def test_nodes_of_an_older_commit_are_deployed_and_rolled_back(gang: Gang, tmp_path: Path) -> None:
    begin(gang)
    packed = subprocess.run(
        ["git", "archive", OLDER, "deploys", "recipes", "templates"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path, filter="data")
    code, output = run(gang, tmp_path, variant(tmp_path, "stub-old-4x", STUB_NEXT="4"))
    assert code == 0, output[-3000:]
    old = serving(gang)
    gang.apply("recipe.py", variant(tmp_path, "stub-new-4x", STUB_NEXT="5"))
    assert serving(gang) != old
    gang.apply("rollback.py")
    assert serving(gang) == old
