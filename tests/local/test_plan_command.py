"""``pyinfra-vllm plan`` without a node: exit codes, and the same answer as ``pyinfra --dry``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.test_plans_offline import LOST, ROOT, SPARKS, saved  # noqa: F401
from local.test_plans_offline import plan as dry
from pyinfra_vllm.consequences import OPERATIONS

PROGRAM = Path(sys.executable).parent / "pyinfra-vllm"


def plan(*words: str, inventory: str = "inventory/ci.py", **environ: str) -> Any:
    import os

    return subprocess.run(
        [str(PROGRAM), "plan", inventory, "r37", *words],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_PROGRESS": "off", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def test_a_plan_over_saved_states_says_the_same_as_pyinfra(saved: Path) -> None:  # noqa: F811
    states = {"PYINFRA_VLLM_STATES": str(saved)}
    done = plan("--json", **states)
    assert done.returncode == 2, done.stderr
    document = json.loads(done.stdout)
    (gang,) = document["gangs"]
    ours: dict[str, set[str]] = {}
    for change in gang["changes"]:
        ours.setdefault(change["operation"], set()).update(change["nodes"])
        assert change["key"] in OPERATIONS
    theirs = dry("inventory/ci.py", **states)
    assert ours == {name: set(hosts) for name, hosts in theirs.items() if hosts}
    assert {f["status"] for f in gang["findings"]} >= {"ok"}
    assert gang["release"] and gang["wanted"] is None


def test_every_operation_of_the_main_deploy_has_a_consequence() -> None:
    """Also of those that change nothing here."""
    from pyinfra_vllm import deploys

    folder = Path(deploys.__file__).parent
    source = "".join((folder / f"{name}.py").read_text() for name in ("staging", "serve"))
    used = set(re.findall(r"^\s+(\w+\.\w+)\(\s*name=", source, re.M))
    assert used == set(OPERATIONS)


def test_limit_that_matches_nobody_is_an_error(saved: Path) -> None:  # noqa: F811
    done = plan("--limit", "@fake/spark-9", PYINFRA_VLLM_STATES=str(saved))
    assert done.returncode == 1
    assert "--limit @fake/spark-9: no host" in done.stderr


def test_a_part_of_the_gang_can_be_planned_only_without_a_switch(
    saved: Path,  # noqa: F811
) -> None:
    done = plan("--limit", SPARKS[1], PYINFRA_VLLM_STATES=str(saved))
    assert done.returncode == 1
    assert "run without --limit" in done.stdout


def test_a_failed_preflight_is_an_error_with_its_findings(
    saved: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    for path in saved.iterdir():
        document = json.loads(path.read_text())
        document["sysctls"]["value"]["kernel.io_uring_disabled"] = "2"
        (tmp_path / path.name).write_text(json.dumps(document))
    done = plan(PYINFRA_VLLM_STATES=str(tmp_path))
    assert done.returncode == 1
    assert "  fail    io-uring" in done.stdout
    assert done.stdout.splitlines()[-1] == "a deploy refuses"


def test_a_node_that_can_not_be_read_is_unknown_and_an_error(
    saved: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    inventory = tmp_path / "lost.py"
    inventory.write_text(LOST.format(states=str(saved)))
    done = plan("--json", inventory=str(inventory))
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert list(document["unknown"]) == ["spark-2"]
    nodes = {node for change in document["gangs"][0]["changes"] for node in change["nodes"]}
    assert nodes == {SPARKS[0], SPARKS[1], SPARKS[3]}


@pytest.mark.parametrize("words", [("nowhere.py", "r37"), ("inventory/ci.py", "r99")])
def test_a_users_mistake_is_an_error_without_traceback(words: tuple[str, str]) -> None:
    done = subprocess.run(
        [str(PROGRAM), "plan", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
