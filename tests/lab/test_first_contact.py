"""Day one: an ordinary user, sudo with a password, ssh aliases, a jump host."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Lab
from .test_node_down import FORGET, RECIPE, with_label

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
PYINFRA = str(Path(sys.executable).parent / "pyinfra")
PASSWORD = "secret words"
ASKED = "sudo password"

USER = f"""
id op >/dev/null 2>&1 || useradd --create-home --shell /bin/bash op
echo 'op:{PASSWORD}' | chpasswd
install -d -o op -m 0700 /home/op/.ssh
install -o op -m 0600 /root/.ssh/authorized_keys /home/op/.ssh/authorized_keys
echo 'op ALL=(ALL) ALL' > /etc/sudoers.d/op
"""

INVENTORY = """
import runpy as _runpy

_hosts = _runpy.run_path("inventory/lab.py")["lab"]
nodes = [(name, {{**data, **{changes}}}) for name, data in _hosts]
"""


@pytest.fixture(scope="module")
def users(own: Lab) -> Iterator[Lab]:
    """A lab on whose nodes a user ``op`` may use sudo with a password."""
    for machine in own.machines:
        own.ask(machine.rank, USER)
    yield own
    for machine in own.machines:
        own.ask(machine.rank, "rm -f /etc/sudoers.d/op; userdel --remove --force op")


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """The lab's nodes, reached through ``op``."""
    path = tmp_path / "first.py"
    changes = "{'ssh_user': 'op', '_sudo': True}"
    path.write_text(INVENTORY.format(changes=changes))
    return path


def plan(lab: Lab, inventory: Path, *words: str, stdin: str = "") -> tuple[int, str]:
    """Exit code and output of a plan, run where no terminal is."""
    done = subprocess.run(
        [
            PYINFRA,
            *words,
            str(inventory),
            "deploys/recipe.py",
            "--data",
            "recipe=tiny-cpu-4x",
            "--dry",
        ],
        cwd=ROOT,
        env={**os.environ, "PYINFRA_VLLM_LAB": lab.name, "PYINFRA_PROGRESS": "off"},
        input=stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        timeout=300,
    )
    return done.returncode, done.stdout


def test_the_password_of_sudo_is_given_once_for_all_nodes(users: Lab, inventory: Path) -> None:
    code, output = plan(users, inventory, "--same-sudo-password", stdin=f"{PASSWORD}\n")
    assert code == 0, output
    assert output.count(ASKED) == 1
    assert "Unit: installed and enabled" in output
    assert PASSWORD not in output


def test_such_a_user_stages_for_real_and_a_second_run_changes_nothing(
    users: Lab, inventory: Path
) -> None:
    with_label(users)
    words = [PYINFRA, "--same-sudo-password", "-y", str(inventory), "deploys/recipe.py"]
    words += ["--data", "recipe=tiny-cpu-4x", "--data", "stage_only=true"]
    runs = [
        subprocess.run(
            words,
            cwd=ROOT,
            env={**os.environ, "PYINFRA_VLLM_LAB": users.name, "PYINFRA_PROGRESS": "off"},
            input=f"{PASSWORD}\n",
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=300,
        )
        for _ in range(2)
    ]
    try:
        for done in runs:
            assert done.returncode == 0, done.stderr
            assert PASSWORD not in done.stdout + done.stderr
        assert "Release: files (" in runs[0].stderr
        assert re.search(r"changed +nothing", runs[1].stderr), runs[1].stderr
    finally:
        for machine in users.machines:
            users.ask(machine.rank, FORGET)
            users.ask(machine.rank, f"docker image rm --force {RECIPE.docker_image} >/dev/null")


def test_without_a_terminal_the_remedy_is_said(users: Lab, inventory: Path) -> None:
    code, output = plan(users, inventory)
    assert code == 1
    names = ", ".join(machine.name for machine in users.machines)
    assert f"{names}: sudo wants a password" in output
    assert "--same-sudo-password" in output
    assert "Traceback" not in output


def test_at_a_terminal_the_password_is_asked_once(users: Lab, inventory: Path) -> None:
    words = [PYINFRA, str(inventory), "deploys/recipe.py", "--data", "recipe=tiny-cpu-4x", "--dry"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.environ |= {"PYINFRA_VLLM_LAB": users.name, "PYINFRA_PROGRESS": "off"}
        os.execv(PYINFRA, words)
    shown = read_until(terminal, "sudo password (for")
    os.write(terminal, f"{PASSWORD}\n".encode())
    shown += read_until(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    assert shown.count(ASKED) == 1
    assert "Unit: installed and enabled" in shown


def read_until(terminal: int, word: str | None, seconds: float = 120) -> str:
    """What is printed up to ``word``; None: to the end."""
    shown, until = "", time.monotonic() + seconds
    while (word is None or word not in shown) and time.monotonic() < until:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data.decode(errors="replace")
    return shown


def test_aliases_and_a_jump_host_of_ssh_config_are_used(users: Lab, tmp_path: Path) -> None:
    first, *others = users.machines
    key = f"IdentityFile {users.layout.key}\n  User root\n"
    known = f"  UserKnownHostsFile {users.layout.known_hosts}\n"
    text = f"Host door\n  HostName {first.address}\n  {key}{known}"
    for machine in others:
        text += f"Host spark{machine.rank}\n  HostName {machine.address}\n  ProxyJump door\n"
        text += f"  {key}{known}"
    config = tmp_path / "ssh_config"
    config.write_text(text)
    hosts = ["door", *(f"spark{machine.rank}" for machine in others)]
    inventory = tmp_path / "aliases.py"
    inventory.write_text(
        "import runpy as _runpy\n"
        '_hosts = _runpy.run_path("inventory/lab.py")["lab"]\n'
        '_data = [{k: v for k, v in d.items() if not k.startswith("ssh_")} for _, d in _hosts]\n'
        f"_ssh = {{'ssh_config_file': {str(config)!r}, 'ssh_known_hosts_file': "
        f"{str(users.layout.known_hosts)!r}}}\n"
        f"nodes = [(name, {{**data, **_ssh}}) for name, data in zip({hosts!r}, _data)]\n"
    )
    code, output = plan(users, inventory)
    assert code == 0, output
    assert "[spark3] Connected" in output
