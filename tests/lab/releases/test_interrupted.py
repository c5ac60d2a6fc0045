"""Deploys that are cut off: the old or the new release serves, and the next run completes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..stub.gang import HERE, LAB, ROOT, Gang
from .changing import begin, serving, unlock, variant

pytestmark = pytest.mark.lab

CUT = Path(__file__).parent / "cut.py"
END = 3
"""Exit code of cut.py when there is no such operation."""


def cut(
    gang: Gang, recipe: str, operation: int | str, seconds: float, name: str
) -> tuple[int, str]:
    """Exit code, and the name of the operation that was cut."""
    words = ["-y", LAB, str(ROOT / "deploys" / "recipe.py"), "--data", recipe]
    done = subprocess.run(
        [sys.executable, str(CUT), str(operation), str(seconds), name, *words],
        cwd=HERE,
        env={**os.environ, "PYINFRA_VLLM_LAB": gang.layout.name, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = re.search(r"cut in (?:Serve \| )?(.+)", done.stderr)
    return done.returncode, found[1] if found else ""


@pytest.fixture(autouse=True)
def after(gang: Gang) -> Iterator[None]:
    yield
    unlock(gang)
    begin(gang)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("SIGKILL", 4),
        pytest.param("SIGKILL", 1, marks=pytest.mark.soak),
        pytest.param("SIGINT", 1, marks=pytest.mark.soak),
    ],
)
def test_cut_between_operations_the_old_or_the_new_release_serves(
    gang: Gang, tmp_path: Path, name: str, step: int
) -> None:
    """Each run stages another release, so that each operation has something to do."""
    old, seen, switched = begin(gang), [], False
    for operation in range(0, 99, step):
        recipe = variant(tmp_path, "stub-cut-4x", STUB_CUT=f"{name}{operation}")
        code, where = cut(gang, recipe, operation, 0, name)
        unlock(gang)
        if code == END:
            break
        seen.append(where)
        now = serving(gang)
        assert now != old or not switched, (where, seen)
        switched, old = now != old, now
    assert switched and len(seen) > 15 / step, seen
    gang.apply("recipe.py", recipe)
    serving(gang)


@pytest.mark.parametrize(
    ("where", "seconds"),
    [
        pytest.param("Composed model: links", 0.2, marks=pytest.mark.soak),
        ("Gang: started", 0.2),
        pytest.param("Gang: ready", 3.0, marks=pytest.mark.soak),
    ],
)
def test_cut_inside_a_long_operation_the_next_run_completes(
    gang: Gang, tmp_path: Path, where: str, seconds: float
) -> None:
    old = begin(gang)
    recipe = variant(tmp_path, "stub-inside-4x", STUB_INSIDE=where)
    code, _ = cut(gang, recipe, where, seconds, "SIGKILL")
    assert code == -9
    unlock(gang)
    time.sleep(2)
    serving(gang)
    gang.apply("recipe.py", recipe)
    assert serving(gang) != old
