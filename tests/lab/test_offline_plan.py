"""What the real nodes plan, their saved states plan too; what the inventory leaves out is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .stub.gang import HERE, ROOT, Gang

pytestmark = pytest.mark.lab

PYINFRA = str(Path(sys.executable).with_name("pyinfra"))
CLI = str(Path(sys.executable).with_name("pyinfra-vllm"))
LAB = str(ROOT / "inventory" / "lab.py")
CI = str(ROOT / "inventory" / "ci.py")

DRIFT = (
    "rm /tmp/composed-models/main/*/config.json && systemctl disable -q vllm-main",
    "echo '{}' > /var/lib/pyinfra-vllm/main/releases/$(basename $(readlink -f "
    "/var/lib/pyinfra-vllm/main/current))/launch.json",
)

DERIVED = f"""
import runpy as _runpy

_hosts = _runpy.run_path({LAB!r})["lab"]
_left_out = ("vllm_fabric_address", "vllm_interfaces", "vllm_hcas")
lab = [
    (name, {{key: value for key, value in data.items() if key not in _left_out}})
    for name, data in _hosts
]
"""


def run(gang: Gang, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words,
        cwd=HERE,
        env={**os.environ, "PYINFRA_VLLM_LAB": gang.layout.name, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def plan(gang: Gang, inventory: str, **environ: str) -> dict[str, list[str]]:
    """Operation -> hosts that it would change."""
    recipe = str(ROOT / "deploys" / "recipe.py")
    words = (PYINFRA, inventory, recipe, "--data", "recipe=stub-4x", "--dry", "--json")
    operations = json.loads(run(gang, *words, **environ).stdout)["plan"]
    return {
        item["name"]: sorted(host.rpartition("/")[2] for host in item["hosts_with_change"])
        for item in operations
    }


def test_saved_states_give_the_plan_that_the_nodes_gave(gang: Gang, tmp_path: Path) -> None:
    gang.each("systemctl start vllm-main")
    gang.wait_serving(0, 60)
    for rank, damage in enumerate(DRIFT, start=1):
        gang.ask(rank, damage)
    try:
        real = plan(gang, LAB)
        run(gang, CLI, "facts", LAB, "--recipe", "stub-4x", "--save", str(tmp_path))
    finally:
        repaired = gang.deploy("stub-4x")
    offline = plan(gang, CI, PYINFRA_VLLM_INVENTORY=LAB, PYINFRA_VLLM_STATES=str(tmp_path))
    assert offline == real
    names = [machine.name for machine in gang.layout.machines]
    changed = {name.rpartition(" | ")[2]: hosts for name, hosts in real.items() if hosts}
    assert changed == {
        "Composed model: links": [names[1]],
        "Release: files": [names[2]],
        "Unit: installed and enabled": [names[1]],
    }
    assert "not restarted" in repaired
    assert not any(plan(gang, LAB).values())


def test_a_fabric_that_is_left_out_is_found_and_gives_the_same_release(
    gang: Gang, tmp_path: Path
) -> None:
    inventory = tmp_path / "derived.py"
    inventory.write_text(DERIVED)
    changed = {name: hosts for name, hosts in plan(gang, str(inventory)).items() if hosts}
    names = [machine.name for machine in gang.layout.machines]
    assert changed == {"Serve | Release: files": names}, "only the note of what was found"
