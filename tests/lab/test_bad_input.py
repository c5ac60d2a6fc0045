"""Mistakes that people make: one clear message with node and remedy, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .commands import ROOT, Ran, pyinfra
from .conftest import Lab

pytestmark = pytest.mark.lab

TINY = ROOT / "recipes" / "tiny-cpu-4x" / "recipe.toml"
LOCAL = "/var/tmp/engram-local/llama-tp4/model-00002-of-00002.safetensors"
BASE = "pyinfra-vllm-lab/debian:bookworm"

Recipe = Callable[..., str]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Write a recipe that differs from tiny-cpu-4x in some places; gives its path."""

    def write(*changes: tuple[str, str]) -> str:
        text = TINY.read_text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "recipe.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def inventory(tmp_path: Path) -> Callable[[str], Path]:
    """An inventory that is the lab's, changed by a line of python on ``lab``."""

    def write(change: str) -> Path:
        path = tmp_path / "lab.py"
        source = ROOT / "inventory" / "lab.py"
        path.write_text(source.read_text() + f"\n{change}\n")
        return path

    return write


def refused(ran: Ran, *words: str) -> None:
    """The run failed with these words, without a traceback."""
    assert ran.code == 1, ran.text
    assert "Traceback" not in ran.text, ran.text
    for word in words:
        assert word in ran.text, f"{word!r} is not in:\n{ran.text}"


def nothing_was_changed(own: Lab) -> None:
    for rank in range(4):
        assert own.ask(rank, "ls -A /var/lib/pyinfra-vllm 2>/dev/null || true") == ""
        assert own.ask(rank, "ls /etc/systemd/system/vllm-* 2>/dev/null || true") == ""


@contextmanager
def on_node(own: Lab, rank: int, breaks: str, mends: str) -> Iterator[None]:
    own.ask(rank, breaks)
    try:
        yield
    finally:
        own.ask(rank, f"{mends}; systemctl reset-failed")


def test_a_wrong_recipe_names_file_and_key(own: Lab, recipe: Recipe) -> None:
    path = recipe(("required_nodes = 4", 'required_nodes = "four"\nimage_dir = "x"'))
    ran = pyinfra("-y", "--data", f"recipe={path}", lab=own.name)
    refused(ran, f"{path}: required_nodes:", "image_dir", "docker_image_dir")
    nothing_was_changed(own)


@pytest.mark.parametrize("value", ["37", "1.10", "r99", "jovian"])
def test_a_recipe_that_is_none_or_several_is_explained(own: Lab, value: str) -> None:
    refused(pyinfra("-y", "--data", f"recipe={value}", lab=own.name), "recipe")


def test_too_few_nodes_are_counted(own: Lab, inventory: Callable[[str], Path]) -> None:
    few = inventory("lab = lab[:2]")
    ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", inventory=few, lab=own.name)
    refused(ran, "4", "2")
    nothing_was_changed(own)


def test_two_nodes_with_one_rank_are_named(own: Lab, inventory: Callable[[str], Path]) -> None:
    twins = inventory("lab[3][1]['vllm_rank'] = 2")
    ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", inventory=twins, lab=own.name)
    refused(ran, f"{own.name}-2", f"{own.name}-3", "vllm_rank")
    nothing_was_changed(own)


@pytest.mark.parametrize("option", ["--serial", "--no-wait"])
def test_options_that_break_the_order_are_refused(own: Lab, option: str) -> None:
    ran = pyinfra("-y", option, "--data", "recipe=tiny-cpu-4x", lab=own.name)
    refused(ran, option, "order")


def test_docker_that_is_missing_is_named_with_its_remedy(own: Lab) -> None:
    breaks = "systemctl stop docker.socket docker && mv /usr/sbin/dockerd /usr/sbin/away"
    mends = "mv /usr/sbin/away /usr/sbin/dockerd && systemctl start docker.socket docker"
    with on_node(own, 2, breaks, mends):
        ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", lab=own.name)
    refused(ran, f"{own.name}-2", "docker", "systemctl enable --now docker")
    nothing_was_changed(own)


def test_a_model_that_is_not_in_the_cache_comes_with_the_command(own: Lab, recipe: Recipe) -> None:
    path = recipe(('"tiny-random/llama-tp4"', '"acme/other-model"'))
    ran = pyinfra("-y", "--data", f"recipe={path}", lab=own.name)
    refused(ran, "hf download acme/other-model", f"{own.name}-0", f"{own.name}-3")
    nothing_was_changed(own)


def test_a_local_file_that_is_missing_is_named(own: Lab) -> None:
    with on_node(own, 1, f"mv {LOCAL} {LOCAL}.away", f"mv {LOCAL}.away {LOCAL}"):
        ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", lab=own.name)
    refused(ran, f"{own.name}-1", LOCAL, "missing")
    nothing_was_changed(own)


def test_a_local_file_on_another_file_system_is_named(own: Lab) -> None:
    with on_node(own, 3, "mount -t tmpfs tmpfs /tmp", "umount /tmp"):
        ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", lab=own.name)
    refused(ran, f"{own.name}-3", LOCAL, "file system")
    nothing_was_changed(own)


@pytest.mark.parametrize("foreign", ["process", "container"])
def test_a_port_that_is_taken_names_who_has_it(own: Lab, foreign: str) -> None:
    server = "python3 -m http.server 8000"
    if foreign == "process":
        breaks = f"systemd-run --quiet --unit foreign {server}; sleep 1"
        mends = "systemctl stop foreign"
    else:
        breaks = f"docker run -d --name foreign --network host {BASE} {server}; sleep 2"
        mends = "docker rm -f foreign"
    with on_node(own, 0, breaks, mends):
        ran = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", lab=own.name)
    refused(ran, f"{own.name}-0", "8000", "foreign" if foreign == "container" else "http.server")
    nothing_was_changed(own)


def clear(own: Lab) -> None:
    for rank in range(4):
        own.ask(
            rank,
            "systemctl disable --now vllm-main 2>/dev/null; docker rm -f vllm-main 2>/dev/null; "
            "rm -rf /var/lib/pyinfra-vllm /etc/systemd/system/vllm-main.service "
            "/etc/tmpfiles.d/pyinfra-vllm.conf /tmp/composed-models; "
            "systemctl daemon-reload; systemctl reset-failed",
        )


@pytest.fixture
def images(tmp_path: Path) -> Callable[[str], Path]:
    """A working directory with an image of its own: a plain Dockerfile."""

    def write(dockerfile: str) -> Path:
        folder = tmp_path / "templates" / "images" / "test"
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(dockerfile)
        return tmp_path

    return write


OTHER_IMAGE = (
    ('docker_image_dir = "vllm-cpu"\nbuild_profile = "vllm-cpu"', 'docker_image_dir = "test"'),
    ('docker_image = "vllm-cpu:lab"', 'docker_image = "test:lab"'),
)


def test_a_node_out_of_reach_stops_a_switch_and_the_others_are_only_staged(
    own: Lab, recipe: Recipe, images: Callable[[str], Path], inventory: Callable[[str], Path]
) -> None:
    folder = images(f"FROM {BASE}\nENTRYPOINT []\n")
    lost = inventory("lab[3][1]['ssh_port'] = 1")
    path = recipe(*OTHER_IMAGE)
    ran = pyinfra("-y", "--data", f"recipe={path}", inventory=lost, lab=own.name, cwd=folder)
    try:
        refused(ran, f"{own.name}-3: can't be reached", "a switch needs all nodes")
        for rank in range(4):
            ask = "docker ps -aq; systemctl is-active vllm-main || true"
            assert own.ask(rank, ask) == "inactive"
    finally:
        clear(own)


def test_a_build_that_fails_shows_its_last_lines(
    own: Lab, recipe: Recipe, images: Callable[[str], Path]
) -> None:
    folder = images(f"FROM {BASE}\nRUN seq 1000 1100 && echo out of luck && exit 3\n")
    path = recipe(*OTHER_IMAGE)
    ran = pyinfra("-y", "--data", f"recipe={path}", lab=own.name, cwd=folder)
    try:
        refused(ran, "out of luck", "1100", "build")
        assert own.ask(1, "systemctl is-active vllm-main || true") == "inactive"
    finally:
        clear(own)


def test_an_engine_that_dies_shows_the_log_of_the_first_rank(
    own: Lab, recipe: Recipe, images: Callable[[str], Path]
) -> None:
    folder = images(f"FROM {BASE}\nENTRYPOINT []\n")
    dies = 'entrypoint = ["sh", "-c", "seq 1000 1100; echo no such flag; exit 7", "sh"]'
    path = recipe(*OTHER_IMAGE, ('entrypoint = ["vllm", "serve"]', dies))
    ran = pyinfra("-y", "--data", f"recipe={path}", lab=own.name, cwd=folder)
    try:
        refused(ran, "no such flag", "1100", "rank", "exit code 7")
        assert "1040" not in ran.text.partition("Gang: ready")[2]
    finally:
        clear(own)
