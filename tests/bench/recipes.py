"""How long it takes to check 200 recipes, and to render one for four nodes.

    python tests/bench/recipes.py [RECIPES]

The median of three runs of each command, with the seconds of processor that it used. To reach:
200 recipes checked in 2 s, four nodes rendered in 1 s.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("pyinfra-vllm")
RECIPE = "dsv41-flash-jovian-r37-4x"
RUNS = 3


def seconds(*words: str | Path, cwd: Path) -> tuple[float, float]:
    """Wall clock and processor time of a command that must end well."""
    found = []
    for _ in range(RUNS):
        began, used = time.monotonic(), os.times().children_user
        subprocess.run([PROGRAM, *words], cwd=cwd, check=True, capture_output=True)
        found.append((time.monotonic() - began, os.times().children_user - used))
    wall, processor = zip(*found, strict=True)
    return statistics.median(wall), statistics.median(processor)


def copies(folder: Path, number: int) -> None:
    """So many recipes, each with a name of its own, beside the project's images."""
    text = (ROOT / "recipes" / RECIPE / "recipe.toml").read_text()
    (folder / "templates").symlink_to(ROOT / "templates")
    for one in range(number):
        recipe = folder / "recipes" / f"{RECIPE}-{one}" / "recipe.toml"
        recipe.parent.mkdir(parents=True)
        recipe.write_text(text)


def pinned(folder: Path) -> Path:
    """The recipe with its model pinned, so that no saved state is needed."""
    path = folder / "pinned" / "recipe.toml"
    path.parent.mkdir()
    text = (ROOT / "recipes" / RECIPE / "recipe.toml").read_text()
    source = "[[composed_model.sources]]\n"
    path.write_text(text.replace(source, f'{source}revision = "{"0" * 40}"\n'))
    return path


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    folder = Path(tempfile.mkdtemp())
    try:
        copies(folder, number)
        wall, used = seconds("check", cwd=folder)
        print(f"check of {number} recipes   {wall:6.2f} s ({used:.2f} s of processor)")
        words = (pinned(folder), "--inventory", ROOT / "inventory" / "gb10.py")
        wall, used = seconds("render", *words, "--out", folder / "out", cwd=ROOT)
        print(f"render for 4 nodes    {wall:6.2f} s ({used:.2f} s of processor)")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
