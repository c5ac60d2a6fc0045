"""Two operators on one gang: the lock on its head."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from pyinfra_vllm.agent import paths
from pyinfra_vllm.gang_lock import Lock
from pyinfra_vllm.lab import ssh

from .stub.gang import UNIT, Gang

pytestmark = pytest.mark.lab

PATH = paths.lock("main")
OTHER = Lock("main", "serve r37", "alice@laptop:4711")
RELEASE_FILE = "/var/lib/pyinfra-vllm/main/current/command.txt"
RECIPE = "recipe=stub-4x"


def on_head(gang: Gang, script: str) -> dict[str, object]:
    command = f"printf %s {shlex.quote(script)} | python3 -"
    return dict(json.loads(ssh.ask(gang.layout, gang.layout.machines[0], command)))


def lock(gang: Gang) -> str:
    """Who has the lock."""
    return gang.look(0, f"grep holder {PATH} 2>/dev/null").partition(": ")[2].strip('",')


@pytest.fixture
def drifted(gang: Gang) -> Iterator[Gang]:
    """A file of the release is missing on a worker: there is something to change."""
    gang.ask(2, f"rm -f {RELEASE_FILE}")
    gang.ask(0, f"rm -f {PATH}")
    yield gang
    gang.ask(0, f"rm -f {PATH}")
    if gang.look(2, f"ls {RELEASE_FILE}") == "":
        gang.deploy("stub-4x")


def test_a_second_operator_is_refused_with_the_name_of_the_first(drifted: Gang) -> None:
    assert on_head(drifted, OTHER.taking())["taken"]
    output = drifted.fails("recipe.py", RECIPE)
    assert "gang main is being changed by alice@laptop:4711 (serve r37, since" in output
    assert "--data break_lock=alice@laptop:4711" in output
    assert "Traceback" not in output
    assert drifted.look(2, f"ls {RELEASE_FILE}") == "", "nothing was changed"
    drifted.apply("recipe.py", RECIPE, "break_lock=alice@laptop:4711")
    assert drifted.look(2, f"ls {RELEASE_FILE}") == RELEASE_FILE
    assert lock(drifted) == ""


def test_a_deploy_with_nothing_to_change_needs_no_lock(gang: Gang) -> None:
    gang.deploy("stub-4x")
    assert on_head(gang, OTHER.taking())["taken"]
    gang.deploy("stub-4x")
    assert on_head(gang, OTHER.releasing())["released"]


def test_the_second_waits_as_long_as_it_was_told(drifted: Gang) -> None:
    assert on_head(drifted, OTHER.taking())["taken"]
    run = drifted.begin("recipe.py", RECIPE, "lock_wait=120")
    assert run.stdout is not None
    assert any("waiting for it" in line for line in run.stdout)
    assert on_head(drifted, OTHER.releasing())["released"]
    output = run.communicate()[0]
    assert run.returncode == 0, output
    assert drifted.look(2, f"ls {RELEASE_FILE}") == RELEASE_FILE


def stop(run: subprocess.Popen[str], number: signal.Signals) -> None:
    """pyinfra loses a ^C that comes while its ssh library works: people press it again."""
    for _ in range(10):
        run.send_signal(number)
        try:
            run.wait(5)
            return
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the run goes on")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_early_keeps_nobody_out(drifted: Gang, number: signal.Signals) -> None:
    """^C gives the lock back; that of a controller that was killed is taken over."""
    drifted.ask(3, f"systemctl stop {UNIT}")
    run = drifted.begin("recipe.py", RECIPE)
    try:
        while not lock(drifted) and run.poll() is None:
            time.sleep(0.1)
        assert lock(drifted).endswith(f":{run.pid}")
        stop(run, number)
    finally:
        run.kill()
    if number == signal.SIGKILL:
        assert lock(drifted).endswith(f":{run.pid}")
        output = drifted.apply("recipe.py", RECIPE)
        assert "was a process of this machine, and has ended" in output
    assert lock(drifted) == ""
