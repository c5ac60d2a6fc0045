"""Inventory files are read without pyinfra where that gives what pyinfra gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm.cli import _inventory

BOTH = """
import json, pathlib, sys
from pyinfra_vllm.cli import _inventory
found = []
for path in sys.argv[1:]:
    mine = _inventory.plain(pathlib.Path(path))
    items = None if mine is None else list(mine.items())
    found.append([items, list(_inventory.by_pyinfra(path).items())])
print(json.dumps(found))
"""
ROOT = Path(__file__).parents[2]
PLAIN = {
    "lists": 'one = ["a", ("b", {"x": 1})]\ntwo = [("a", {"y": [2]}), "c"]\n',
    "all": 'some = [("a", {"x": 1})]\nall = ["b", ("a", {"x": 2})]\n',
    "all without data": 'some = [("a", {"x": 1}), ("b", {"x": 3})]\nall = ["b"]\n',
    "the same host twice": 'one = [("a", {"x": 1, "z": 1})]\ntwo = [("a", {"x": 2})]\n',
    "group named as the file": 'inv = [("a", {"x": 1})]\nother = [("b", {})]\n',
    "helpers": "_hidden = ['x']\nnumber = 3\nfor _n in range(2):\n    pass\nnodes = ['a']\n",
    "imports": "import os as _os\nfrom pathlib import Path\nnodes = [_os.sep.join('ab')[:1]]\n",
    "nothing": "",
    "empty list": "nodes = []\n",
}
FOREIGN = {
    "group with data": 'nodes = (["a"], {"x": 1})\n',
    "connector": 'nodes = ["@local"]\n',
    "pyinfra itself": "from pyinfra.api import Config as _C\nnodes = ['a']\n",
    "wrong item": "nodes = [1]\nothers = ['a']\n",
    "wrong data": "nodes = [('a', 1)]\n",
    "three values": "nodes = [('a', {}, 1)]\n",
    "raises": "raise ValueError('x')\n",
    "no Python": "nodes = [\n",
    "empty name": "nodes = ['']\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_both(*paths: Path) -> list[list[object]]:
    """What both ways give, in a process of its own: pyinfra patches the standard library."""
    done = subprocess.run(
        [sys.executable, "-c", BOTH, *paths], capture_output=True, text=True, check=True
    )
    found: list[list[object]] = json.loads(done.stdout)
    return found


def test_a_plain_file_gives_what_pyinfra_gives(folder: Path) -> None:
    for number, text in enumerate(PLAIN.values()):
        (folder / str(number)).mkdir()
        (folder / str(number) / "inv.py").write_text(text)
    paths = [folder / str(number) / "inv.py" for number in range(len(PLAIN))]
    shipped = ROOT / "inventory" / "gb10.py"
    for name, (mine, pyinfras) in zip([*PLAIN, "shipped"], read_both(*paths, shipped), strict=True):
        assert mine == pyinfras is not None, name


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_plain_is_left_to_pyinfra(folder: Path, text: str) -> None:
    path = folder / "inv.py"
    path.write_text(text)
    assert _inventory.plain(path) is None


@pytest.mark.parametrize("place", [".", "below"])
def test_group_data_is_left_to_pyinfra(folder: Path, place: str) -> None:
    path = folder / "below" / "inv.py"
    path.parent.mkdir()
    path.write_text('nodes = [("a", {"x": 1})]\n')
    data = folder / place / "group_data"
    data.mkdir()
    (data / "nodes.py").write_text("y = 2\n")
    assert _inventory.plain(path) is None
    assert read_both(path) == [[None, [["a", {"x": 1, "y": 2}]]]]
