"""Plans without a node: inventory/ci.py over saved states, and a gang with a node missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unit import gb10

ROOT = Path(__file__).parents[2]
PYINFRA = Path(sys.executable).parent / "pyinfra"


def pyinfra(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PYINFRA), *words],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_PROGRESS": "off", **environ},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def plan(*words: str, **environ: str) -> dict[str, list[str]]:
    """Operation -> hosts that it would change."""
    done = pyinfra(
        *words, "deploys/recipe.py", "--data", "recipe=r37", "--dry", "--json", **environ
    )
    assert done.returncode == 0, done.stderr
    operations = json.loads(done.stdout)["plan"]
    return {
        str(item["name"]).partition(" | ")[2]: sorted(item["hosts_with_change"])
        for item in operations
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """States of four GB10 nodes on which someone has built r37's image."""
    folder = tmp_path_factory.mktemp("states")
    image = {"id": "sha256:1", "build": gb10.build().digest, "layers": ["sha256:2"]}
    for rank in range(4):
        document = gb10.document(rank)
        document["images"]["value"] = [image]
        (folder / f"spark-{rank}.json").write_text(json.dumps(document))
    return folder


SPARKS = [f"@fake/spark-{rank}" for rank in range(4)]


def test_saved_states_give_a_plan_with_no_node_in_reach(saved: Path) -> None:
    found = plan("inventory/ci.py", PYINFRA_VLLM_STATES=str(saved))
    assert found["Release: files"] == found["Unit: installed and enabled"] == SPARKS
    assert not [name for name, hosts in found.items() if name.startswith("Image") and hosts]
    assert found["Gang: speaks over RDMA"] == SPARKS


def test_blank_nodes_give_a_plan_too_and_say_so() -> None:
    done = pyinfra("inventory/ci.py", "deploys/recipe.py", "--data", "recipe=r37", "--dry")
    assert done.returncode == 0
    assert "planned as a blank node" in done.stderr
    assert "its state is not known, and nothing is checked" in done.stderr


def test_a_state_that_was_saved_for_another_recipe_is_refused(saved: Path) -> None:
    done = pyinfra(
        "inventory/ci.py", "deploys/recipe.py", "--data", "recipe=tiny-cpu-4x", "--dry",
        PYINFRA_VLLM_STATES=str(saved),
    )  # fmt: skip
    assert done.returncode == 1
    assert "its saved state doesn't tell about" in done.stderr
    assert "pyinfra-vllm facts" in done.stderr


def test_a_state_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    (tmp_path / "spark-2.json").write_text("{")
    done = pyinfra("inventory/ci.py", "deploys/recipe.py", "--data", "recipe=r37", "--dry",
                   PYINFRA_VLLM_STATES=str(tmp_path))  # fmt: skip
    assert done.returncode == 1 and f"{tmp_path}/spark-2.json" in done.stderr


def test_what_the_preflight_finds_stops_an_offline_plan(saved: Path, tmp_path: Path) -> None:
    for path in saved.iterdir():
        document = json.loads(path.read_text())
        document["sysctls"]["value"]["kernel.io_uring_disabled"] = "2"
        (tmp_path / path.name).write_text(json.dumps(document))
    done = pyinfra("inventory/ci.py", "deploys/recipe.py", "--data", "recipe=r37", "--dry",
                   PYINFRA_VLLM_STATES=str(tmp_path))  # fmt: skip
    assert done.returncode == 1
    assert "spark-3: kernel.io_uring_disabled is 2, 0 is needed" in done.stderr


LOST = """
from pyinfra_vllm import offline

_hosts = offline.groups("inventory/gb10.py", {states!r})["spark"]
_dead = {{"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_config_file": "/dev/null"}}
_data = {{key: value for key, value in _hosts[2][1].items() if not key.startswith("fake")}}
spark = [*_hosts[:2], ("spark-2", {{**_data, **_dead}}), _hosts[3]]
"""


def test_a_node_that_does_not_answer_stops_a_switch_and_not_the_staging(
    saved: Path, tmp_path: Path
) -> None:
    inventory = tmp_path / "lost.py"
    inventory.write_text(LOST.format(states=str(saved)))
    done = pyinfra("-y", str(inventory), "deploys/recipe.py", "--data", "recipe=r37")
    assert done.returncode == 1
    assert "spark-2: can't be reached (see above), and left out" in done.stderr
    staged = done.stderr.index("Release: files")
    assert "nothing is switched: spark-2" in done.stderr[staged:]
    assert "Traceback" not in done.stderr
