"""A build window on a gang that serves: cut anywhere, with the controller gone for good."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths

from .stub.gang import HERE, Gang

pytestmark = pytest.mark.lab

MARK = "/var/lib/pyinfra-vllm/main/paused"
LOCK = paths.lock("main")
DATA = ("recipe=stub-4x", "vllm_image_source=window")
TAG = "vllm-stub:window"


@pytest.fixture
def fresh(gang: Gang, tmp_path: Path) -> Iterator[Path]:
    """A working directory whose recipe needs an image that nobody has built before."""
    gang.deploy("stub-4x")
    for name in ("recipes", "templates"):
        shutil.copytree(HERE / name, tmp_path / name)
    recipe = tmp_path / "recipes" / "stub-4x" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("vllm-stub:lab", TAG))
    dockerfile = tmp_path / "templates" / "images" / "stub" / "Dockerfile"
    dockerfile.write_text(f"{dockerfile.read_text()}RUN sleep 8 && echo {time.time()} > /built\n")
    yield tmp_path
    gang.look(0, f"rm -f {MARK} {LOCK}")
    gang.deploy("stub-4x")


def is_built(gang: Gang, rank: int) -> bool:
    return gang.look(rank, f"docker image ls --quiet {TAG}") != ""


def cut_at(run: subprocess.Popen[str], line: str) -> str:
    """Kill the controller when it prints a line."""
    assert run.stdout is not None
    output = ""
    for text in run.stdout:
        output += text
        if line in text:
            break
    run.kill()
    run.wait()
    assert line in output, output[-3000:]
    return output


def test_on_nodes_that_serve_a_build_is_refused_with_the_choices(gang: Gang, fresh: Path) -> None:
    run = gang.begin("recipe.py", "recipe=stub-4x", folder=fresh)
    output = run.communicate()[0]
    assert run.returncode == 1
    assert "GiB of memory are available, the build takes" in output
    assert 'vllm_image_source = "window"' in output
    assert gang.complete()


def soaking(line: str) -> object:
    return pytest.param(line, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    "line",
    [
        f"Starting operation: Serve | Image {TAG}: built",
        soaking(f"Starting operation: Serve | Image {TAG}: on every node"),
        soaking("Starting operation: Serve | Gang: started"),
        soaking("Starting operation: Serve | Build window: closed"),
    ],
)
def test_service_returns_wherever_the_controller_is_lost(
    gang: Gang, fresh: Path, line: str
) -> None:
    before = gang.status()
    cut_at(gang.begin("recipe.py", *DATA, folder=fresh), line)
    gang.wait_serving(before["start"], 150)
    assert gang.complete()


@pytest.mark.soak
@pytest.mark.parametrize("line", ["Build window: opened", "build window: the gang doesn't serve"])
def test_service_goes_on_or_returns_when_the_window_was_hardly_open(
    gang: Gang, fresh: Path, line: str
) -> None:
    cut_at(gang.begin("recipe.py", *DATA, folder=fresh), line)
    time.sleep(60)  # longer than the lease, at the pace of these agents
    gang.wait_serving(-1, 60)
    assert gang.complete()


@pytest.mark.soak
def test_the_window_ends_with_the_new_release_on_all_nodes(gang: Gang, fresh: Path) -> None:
    before = gang.status()
    run = gang.begin("recipe.py", *DATA, folder=fresh)
    output = run.communicate()[0]
    assert run.returncode == 0, output[-3000:]
    assert output.index("build window: the gang doesn't serve") < output.index("built sha256:")
    status = gang.wait_serving(before["start"], 10)
    assert status["release"] != before["release"]
    assert all(is_built(gang, rank) for rank in range(4))
    assert gang.look(0, f"ls {MARK}") == ""
