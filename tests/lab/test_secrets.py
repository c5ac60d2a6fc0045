"""A secret reaches the engine and nothing else: plans, logs, files, command lines are searched."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.lab import ssh

from .commands import ROOT, Ran, pyinfra
from .conftest import Lab
from .fidelity_cases import recipe
from .test_fidelity import KEPT, engine

__all__ = ["engine"]
pytestmark = pytest.mark.lab

PLANTED = "planted-7e57-secret"
OTHER = "replaced-7e57-secret"
KEY = "VLLM_API_KEY"


class Site:
    """A recipe with secrets and an inventory that names the file with their values."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.recipe = folder / "recipe.toml"
        text = recipe(["--first"], {"X": "1"}, "serve")
        self.recipe.write_text(f'secrets = ["{KEY}", "HF_TOKEN"]\n{text}')
        self.values = folder / "values"
        self.inventory = folder / "inventory.py"
        self.inventory.write_text(
            f"{(ROOT / 'inventory' / 'lab.py').read_text()}\n"
            f"_more = {{'vllm_secrets': {str(self.values)!r}}}\n"
            "lab = [(name, {**data, **_more}) for name, data in lab]\n"
        )

    def write(self, key: str) -> None:
        self.values.touch(0o600)
        self.values.write_text(f"{KEY}={key}\n")

    def run(self, *words: str) -> Ran:
        os.environ["HF_TOKEN"] = f"{PLANTED}-token"
        try:
            return pyinfra(
                *words,
                "--data", f"recipe={self.recipe}",
                lab=self.lab.name,
                inventory=self.inventory,
            )  # fmt: skip
        finally:
            del os.environ["HF_TOKEN"]

    def got(self) -> dict[str, str]:
        words = json.loads(self.lab.ask(0, f"cat {KEPT}"))["environ"]
        return dict(base64.b64decode(word).decode().split("=", 1) for word in words)

    def container(self) -> str:
        return self.lab.ask(0, "docker inspect -f '{{.Id}} {{.State.StartedAt}}' vllm-main")


@pytest.fixture(scope="module")
def site(engine: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Ran]]:
    found = Site(engine, tmp_path_factory.mktemp("secrets"))
    found.write(PLANTED)
    done = found.run("-y", "-vvv", "--diff")
    assert done.code == 0, done.text[-6000:]
    yield found, done


def code(address: str, key: str | None) -> int:
    headers: dict[str, Any] = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"http://{address}:8000/v1/completions"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, b"{}", headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_engine_has_the_secrets_and_asks_for_the_key(site: tuple[Site, Ran]) -> None:
    found, _ = site
    assert found.got()[KEY] == PLANTED
    assert found.got()["HF_TOKEN"] == f"{PLANTED}-token"
    address = found.lab.machines[0].address
    assert (code(address, None), code(address, PLANTED)) == (401, 200)


def test_nothing_else_shows_them(site: tuple[Site, Ran]) -> None:
    found, first = site
    assert f"secret {KEY}" in first.text
    assert PLANTED not in first.text
    assert PLANTED not in found.run("--dry", "--diff").text
    # The script comes by standard input: no command line has the word that it looks for.
    script = f"WORD = {PLANTED!r}\n{(Path(__file__).parent / 'find_word.py').read_text()}"
    told = ssh.ask(found.lab.layout, found.lab.machines[0], "python3 -", script)
    assert told.splitlines() == ["/var/lib/pyinfra-vllm/main/secrets.json"]
    kept = found.lab.ask(0, "stat -c '%a %U' /var/lib/pyinfra-vllm/main/secrets.json")
    assert kept == "600 root"


def test_commands_that_only_look_show_none(site: tuple[Site, Ran], tmp_path: Path) -> None:
    found, _ = site
    known = tmp_path / "states"
    nodes = ("facts", found.inventory, "--recipe", found.recipe, "--save", known)
    offline = ("render", found.recipe, "--inventory", found.inventory, "--facts", known)
    plan = ("plan", found.inventory, found.recipe)
    for words in (nodes, plan, (*offline, "--out", tmp_path / "out"), ("check", found.recipe)):
        done = subprocess.run(
            [Path(sys.executable).with_name("pyinfra-vllm"), *words],
            cwd=ROOT,
            env={**os.environ, "PYINFRA_VLLM_LAB": found.lab.name, KEY: PLANTED},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, done.stderr
        assert PLANTED not in done.stdout + done.stderr, words
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert not [path for path in files if PLANTED.encode() in path.read_bytes()]


def test_a_second_run_changes_nothing(site: tuple[Site, Ran]) -> None:
    found, _ = site
    before = found.container()
    again = found.run("-y")
    assert again.code == 0
    assert again.changes() == {}
    assert found.container() == before


def test_another_value_is_seen_by_name_and_starts_the_engine_anew(
    site: tuple[Site, Ran],
) -> None:
    found, _ = site
    before = found.container()
    found.write(OTHER)
    plan = found.run("--dry", "--diff")
    assert f"Will replace secret {KEY}" in plan.text
    assert f"secret {KEY} has changed" in plan.text
    done = found.run("-y", "--diff")
    assert done.code == 0, done.text[-6000:]
    assert found.container() != before
    assert found.got()[KEY] == OTHER
    for text in (plan.text, done.text):
        assert OTHER not in text
        assert PLANTED not in text
    assert found.run("-y").changes() == {}


def test_without_the_values_what_the_nodes_have_is_kept(site: tuple[Site, Ran]) -> None:
    found, _ = site
    before = found.got()[KEY]
    found.values.write_text("")
    done = found.run("-y")
    assert done.code == 0, done.text[-3000:]
    assert f"secret {KEY}: no value on this machine" in done.text
    assert done.changes() == {}
    assert found.got()[KEY] == before
