"""A node loses its power before a deploy and at each stage of one: nothing is switched.

Staging needs no engine, so the nodes have an empty image that bears the build's label.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm import catalog, image
from pyinfra_vllm.facts import reach
from pyinfra_vllm.lab import commands, control

from .conftest import Lab

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
PYINFRA = str(Path(sys.executable).parent / "pyinfra")
RECIPE = catalog.find("tiny-cpu-4x").recipe
LOST = 3
SURVIVORS = range(LOST)
FORGET = (
    "systemctl stop vllm-main; rm -rf /var/lib/pyinfra-vllm /tmp/composed-models "
    "/usr/local/lib/pyinfra-vllm /etc/systemd/system/vllm-main.service; systemctl daemon-reload"
)


def with_label(lab: Lab) -> None:
    """The image that the recipe builds, without anything in it, on every node."""
    build = image.build_of(RECIPE.docker_image_dir or "", RECIPE.build_profile, RECIPE.docker_image)
    for machine in lab.machines:
        lab.ask(
            machine.rank,
            "tar --create --files-from /dev/null | docker import "
            f"--change 'LABEL {image.LABEL}={build.digest}' - {build.tag}",
        )


@pytest.fixture
def staged(own: Lab) -> Iterator[Lab]:
    """Nodes before their first deploy; the one that was lost is on again in the end."""
    with_label(own)
    yield own
    commands.up(own.name, with_images=False)
    for machine in own.machines:
        own.ask(machine.rank, FORGET)
        own.ask(machine.rank, f"docker image rm --force {RECIPE.docker_image} >/dev/null")


def start(lab: Lab) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYINFRA, "-y", "inventory/lab.py", "deploys/recipe.py", "--data", "recipe=tiny-cpu-4x"],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_VLLM_LAB": lab.name, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def nothing_is_switched(lab: Lab) -> bool:
    switched = (
        "test -e /var/lib/pyinfra-vllm/main/current -o -e /var/lib/pyinfra-vllm/main/wanted.json"
    )
    return all(lab.ask(rank, f"{switched} && echo yes || echo no") == "no" for rank in SURVIVORS)


def test_a_node_that_is_off_is_named_and_the_others_are_staged(staged: Lab) -> None:
    control.kill(staged.name, str(LOST))
    output = start(staged).communicate(timeout=300)[0]
    name = staged.machines[LOST].name
    assert f"{name}: can't be reached (see above), and left out" in output
    assert f"nothing is switched: {name}" in output
    assert "Traceback" not in output, output
    for rank in SURVIVORS:
        files = staged.ask(rank, "ls /var/lib/pyinfra-vllm/main/releases/*/launch.json")
        assert files.count("launch.json") == 1
        assert staged.ask(rank, "systemctl is-enabled vllm-main") == "enabled"
    assert nothing_is_switched(staged)
    commands.up(staged.name, with_images=False)
    assert changes(staged, "Release: files") == f"1 ({name})", "the same command goes on"


def changes(lab: Lab, operation: str) -> str:
    """The nodes that an operation would change, as the plan shows them."""
    plan = subprocess.run(
        [PYINFRA, "inventory/lab.py", "deploys/recipe.py", "--data", "recipe=tiny-cpu-4x", "--dry"],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_VLLM_LAB": lab.name, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert plan.returncode == 0, plan.stderr
    (line,) = [line for line in plan.stderr.splitlines() if operation in line]
    return line.partition(operation)[2].rpartition(")")[0].strip() + ")"


def soaking(stage: str) -> object:
    return pytest.param(stage, marks=pytest.mark.soak)


@pytest.mark.parametrize(
    "stage",
    [
        "Release: files",
        soaking("Agent: installed"),
        soaking("Composed model: links"),
        soaking("Unit: installed"),
    ],
)
def test_a_power_cut_in_the_middle_of_a_deploy_switches_nothing(staged: Lab, stage: str) -> None:
    process = start(staged)
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if "Starting operation" in line and stage in line:
            control.kill(staged.name, str(LOST))
            break
    began = time.monotonic()
    output += process.communicate(timeout=300)[0]
    assert process.returncode == 1, output
    assert f"nothing is switched: {staged.machines[LOST].name}" in output, output
    assert "Traceback" not in output, output
    for rank in SURVIVORS:
        assert staged.ask(rank, "systemctl is-enabled vllm-main") == "enabled", "the others go on"
    assert nothing_is_switched(staged)
    assert time.monotonic() - began < 150


WAITS = """
from pyinfra.operations import server

from pyinfra import host
from pyinfra_vllm.facts.reach import notice_loss

notice_loss(host)
server.shell(name="Wait", commands="sleep 600")
"""


def _through_the_head(lab: Lab, folder: Path) -> str:
    """An inventory of the lost node alone, reached by way of the head."""
    config, inventory = folder / "ssh_config", folder / "jump.py"
    text = f"Host *\n  IdentityFile {lab.layout.key}\n  User root\n"
    text += f"  UserKnownHostsFile {lab.layout.known_hosts}\n"
    text += f"Host door\n  HostName {lab.machines[0].address}\n"
    node = lab.machines[LOST]
    text += f"Host {node.name}\n  HostName {node.address}\n  ProxyJump door\n"
    config.write_text(text)
    data = {"ssh_config_file": str(config), "ssh_known_hosts_file": str(lab.layout.known_hosts)}
    inventory.write_text(f"nodes = [({node.name!r}, {data!r})]\n")
    return str(inventory)


def _silence(name: str) -> None:
    """Nothing of the node comes through any more, not even that its connections are closed."""
    subprocess.run(["ip", "link", "set", f"vb-{name}", "down"], check=True)


@pytest.mark.parametrize(
    ("by_way_of", "silent"),
    [
        pytest.param("nobody", False, id="killed"),
        pytest.param("nobody", True, id="silent", marks=pytest.mark.soak),
        pytest.param("a jump host", True, id="silent behind a jump host", marks=pytest.mark.soak),
    ],
)
def test_a_command_that_prints_nothing_ends_when_its_node_is_gone(
    own: Lab, tmp_path: Path, by_way_of: str, silent: bool
) -> None:
    deploy = tmp_path / "wait.py"
    deploy.write_text(WAITS)
    own.ask(LOST, "pkill -x sleep; true")  # of a run before
    node = own.machines[LOST]
    inventory = _through_the_head(own, tmp_path) if by_way_of != "nobody" else "inventory/lab.py"
    process = subprocess.Popen(
        [PYINFRA, "-y", "--limit", node.name, inventory, str(deploy)],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_VLLM_LAB": own.name, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        own.ask(LOST, "until pgrep -x sleep >/dev/null; do sleep 0.2; done")
        if silent:
            _silence(node.name)
        else:
            control.kill(own.name, str(LOST))
        output = process.communicate(timeout=2 * reach.SILENT)[0]
        assert process.returncode == 1, output
        assert "Traceback" not in output, output
    finally:
        process.kill()
        subprocess.run(["ip", "link", "set", f"vb-{node.name}", "up"], check=False)
        commands.up(own.name, with_images=False)
