"""The wheel in an empty venv, and a deploy of somebody else's repository on top of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from wheel_venv import installed_wheel, run

DEPLOY = """
from pyinfra import host
from pyinfra.operations import server

from pyinfra_vllm.deploys import serve

if "gpu" in host.groups:
    server.shell(name="Site: before", commands=["true"], _sudo=True)
    serve("tiny-cpu-4x", _sudo=True)
    server.shell(name="Site: after", commands=["true"], _sudo=True)
"""

# Of the nodes nothing is known: they are planned as blank ones.
INVENTORY = """
from pyinfra_vllm.node import NodeState as _NodeState

_BLANK = {"pyinfra-vllm.state.v1": _NodeState().model_dump_json(by_alias=True)}
gpu = [
    (
        f"@fake/box{n}",
        {
            "rank": "theirs",
            "vllm_rank": n,
            "vllm_fabric_address": f"10.0.0.{n + 1}",
            "vllm_interfaces": ["eth1"],
            "vllm_hcas": [],
            "fake_responses": _BLANK,
        },
    )
    for n in range(4)
]
other = ["@fake/web"]
"""

GROUP_DATA = 'vllm_hf_cache = "/models/hub"\nvllm_gpus = False\nfake_delay = 0\n'


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of a venv that holds the wheel, what it depends on, and nothing else."""
    return installed_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A repository that knows nothing of this one but its name."""
    (tmp_path / "deploy.py").write_text(DEPLOY)
    (tmp_path / "inventory.py").write_text(INVENTORY)
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data" / "gpu.py").write_text(GROUP_DATA)
    return tmp_path


def test_another_repository_plans_with_its_own_inventory_and_group_data(
    programs: Path, site: Path
) -> None:
    done = run(programs / "pyinfra", "--dry", "--json", "inventory.py", "deploy.py", cwd=site)
    plan = {item["name"]: item for item in json.loads(done.stdout)["plan"]}
    boxes = [f"@fake/box{n}" for n in range(4)]
    for operation in ("Serve | Release: files", "Serve | Unit: installed and enabled"):
        assert sorted(plan[operation]["hosts_with_change"]) == boxes
    names = list(plan)
    assert names[0] == "Site: before"
    assert names[-1] == "Site: after"


def test_the_diff_comes_from_the_group_data_and_the_recipe_in_the_wheel(
    programs: Path, site: Path
) -> None:
    done = run(programs / "pyinfra", "--dry", "--diff", "inventory.py", "deploy.py", cwd=site)
    shown = done.stdout + done.stderr
    assert '"source": "/models/hub"' in shown
    assert '"VLLM_HOST_IP": "10.0.0.1"' in shown


def test_recipes_templates_and_the_programs_for_nodes_are_in_the_wheel(
    programs: Path, site: Path
) -> None:
    code = (
        "import pyinfra_vllm.agent_archive as a, pyinfra_vllm.resources as r; "
        "print(r.find('recipes', 'dsv41-flash-jovian-r37-4x', 'recipe.toml')); "
        "print(r.find('templates', 'systemd', 'vllm.service.j2')); print(a.archive_digest())"
    )
    paths = run(programs / "python", "-c", code, cwd=site).stdout.split()
    assert all(Path(path).is_relative_to(programs.parent) for path in paths[:2])
    here = run(Path(sys.executable), "-c", code, cwd=site).stdout.split()
    assert not Path(here[0]).is_relative_to(programs.parent)
    assert paths[2] == here[2]


def test_the_command_of_the_wheel_finds_recipes_in_any_folder(programs: Path, site: Path) -> None:
    assert "lab" in run(programs / "pyinfra-vllm", "--help", cwd=site).stdout
