"""Switches: staged, tried, taken back by the head, rolled back on request."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths

from ..stub.gang import LAB, UNIT, Gang
from .changing import STUB, begin, events, served, serving, unlock, variant, wanted

pytestmark = pytest.mark.lab

ALERTS = "/root/alerts"
ALERT = f'echo "$PYINFRA_VLLM_EVENT: $PYINFRA_VLLM_MESSAGE" >> {ALERTS}'


@pytest.fixture(scope="module")
def old(gang: Gang) -> Iterator[str]:
    """The release of stub-4x, which serves when a test begins; the module leaves it so."""
    yield begin(gang)
    begin(gang)


@pytest.fixture(autouse=True)
def recipes(tmp_path: Path, old: str, gang: Gang) -> Iterator[Path]:
    assert serving(gang) == old
    yield tmp_path
    unlock(gang)


def starts(gang: Gang) -> int:
    return int(gang.status()["start"])


def history(gang: Gang) -> str:
    """What the command line tells."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("pyinfra-vllm")), "history", LAB],
        env={**os.environ, "PYINFRA_VLLM_LAB": gang.layout.name},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def is_unchanged(output: str) -> bool:
    return re.search(r"changed +nothing|Grand total +(\d+) +- +- +\1 ", output) is not None


def test_staging_leaves_serving_what_serves_and_staging_again_transfers_nothing(
    gang: Gang, old: str, recipes: Path
) -> None:
    before = starts(gang)
    recipe = variant(recipes, "stub-staged-4x", STUB_NEXT="1")
    output = gang.apply("recipe.py", recipe, "stage_only=true")
    digest = re.search(r"only staged: ([0-9a-f]{12}); nothing is switched", output)
    assert digest is not None
    gang.each(f"test -e {paths.releases('main')}/{digest[1]}*/{paths.LAUNCH}")
    assert is_unchanged(gang.apply("recipe.py", recipe, "stage_only=true"))
    assert (served(gang), starts(gang)) == (old, before)
    output = gang.fails("recipe.py", recipe, "stage_only=perhaps")
    assert "stage_only=perhaps: expected true or false" in output


def test_words_for_people_restart_nothing(gang: Gang, old: str, recipes: Path) -> None:
    before = starts(gang)
    output = gang.apply("recipe.py", variant(recipes, "stub-4x", people="Another name"))
    assert "Release: files" in output
    path = f"{paths.releases('main')}/{old}/release.json"
    assert "Another name" in gang.ask(3, f"cat {path}")
    assert (served(gang), starts(gang)) == (old, before)


def test_release_whose_engine_dies_twice_is_taken_back_and_the_deploy_says_why(
    gang: Gang, old: str, recipes: Path
) -> None:
    gang.ask(0, f"rm -f {ALERTS}")
    dies = variant(recipes, "stub-dies-4x", STUB_EXIT="2")
    output = gang.fails("recipe.py", dies, f"vllm_alert={ALERT}")
    assert "rank 2 is the first whose engine died" in output
    assert "stub engine, rank 2: told to exit" in output
    assert f"the head goes back to {old[:12]}: 2 engines died" in output
    assert re.search(rf"rolled back to {old[:12]}, serving again after \d+ s", output)
    assert serving(gang) == old
    assert "rolled back from" in gang.status()["note"]
    assert "rolled back from" in gang.ask(0, f"systemctl status {UNIT}")
    ended = [(event["event"], event.get("kind")) for event in events(gang)[-4:]]
    assert ended == [
        ("asked", "deploy"), ("rolled back", None), ("asked", "back"), ("serving", None)
    ]  # fmt: skip
    assert "told to exit" in gang.ask(2, f"cat {paths.evidence('main')}/*")
    rolled_back = f"grep -c '^rolled back: rolled back from .*: 2 engines died' {ALERTS}"
    assert gang.ask(0, rolled_back) == "1", "a person hears of it, once"


def test_silent_start_is_taken_back_in_time_with_the_controller_gone(
    gang: Gang, old: str, recipes: Path
) -> None:
    run = gang.begin(
        "recipe.py", variant(recipes, "stub-silent-4x", STUB_START="900"), "trial_seconds=15"
    )
    while wanted(gang)["release"] == old:
        time.sleep(0.5)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert wanted(gang)["previous"] == old
    end = time.monotonic() + 120
    while wanted(gang)["release"] != old:
        assert time.monotonic() < end, gang.status()
        time.sleep(1)
    assert "no first completion in" in wanted(gang)["back"]["why"]
    assert serving(gang) == old


def test_start_that_makes_progress_gets_more_time_and_rollback_returns_to_the_release_before(
    gang: Gang, old: str, recipes: Path
) -> None:
    recipe = variant(recipes, "stub-slow-4x", STUB_START="20", STUB_TALKS="1")
    output = gang.apply("recipe.py", recipe, "trial_seconds=18")
    assert re.search(r"time without service: [\d.]+ s; the bare engine start took", output)
    slow = serving(gang)
    assert slow != old
    assert is_unchanged(gang.apply("recipe.py", recipe, "trial_seconds=18"))

    output = gang.fails("rollback.py", "release=fff")
    assert "no release begins with fff" in output and f"{old[:12]} (stub-4x)" in output
    manifest = f"{paths.releases('main')}/{old}"
    gang.ask(3, f"mv {manifest} /root/kept")
    assert f"release {old[:12]} is not there" in gang.fails("rollback.py")
    gang.ask(3, f"mv /root/kept {manifest}")
    assert serving(gang) == slow

    output = gang.apply("rollback.py")
    assert "time without service" in output
    assert serving(gang) == old
    assert is_unchanged(gang.apply("rollback.py", f"release={old[:20]}"))

    lines = history(gang).splitlines()
    assert "stub-slow-4x" in lines[-2] and "served" in lines[-2]
    assert "rollback" in lines[-1] and "serving" in lines[-1]


def test_rank_that_lacks_the_release_takes_it_back_at_once(
    gang: Gang, old: str, recipes: Path
) -> None:
    recipe = variant(recipes, "stub-lost-4x", STUB_NEXT="2")
    gang.apply("recipe.py", recipe, "stage_only=true")
    digest = gang.ask(0, f"ls -t {paths.releases('main')} | head -n 1")
    assert digest != old
    gang.ask(1, f"rm -r {paths.releases('main')}/{digest}")
    document = {**wanted(gang), "release": digest, "previous": old, "switch": 10**6}
    gang.ask(
        0,
        "cd /var/lib/pyinfra-vllm/main && python3 -c 'import json, sys; "
        'json.dump(json.loads(sys.argv[1]), open("new", "w"))\' '
        f"'{json.dumps(document)}' && mv new wanted.json",
    )
    end = time.monotonic() + 60
    while wanted(gang)["release"] != old:
        assert time.monotonic() < end, gang.status()
        time.sleep(0.5)
    assert "a rank lacks the release: rank 1" in wanted(gang)["back"]["why"]
    assert serving(gang) == old


def test_the_way_back_leads_to_a_release_of_more_ranks(gang: Gang, old: str) -> None:
    gang.deploy("stub-2x")
    assert gang.complete() and gang.status()["release"] != old
    assert "this one is not needed" in gang.status(3)["detail"]
    gang.apply("rollback.py")
    assert serving(gang) == old


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 2])
def test_every_way_back_leads_to_releases_of_more_and_of_fewer_ranks(
    gang: Gang, old: str, recipes: Path, ranks: int
) -> None:
    original = STUB.parent.with_name("stub-2x") / "recipe.toml"
    fewer = variant(recipes, f"stub-fewer-{ranks}x", original, STUB_T="3")
    path = Path(fewer.removeprefix("recipe="))
    path.write_text(re.sub(r"^(required_nodes|tensor_parallel_size) = 2", rf"\1 = {ranks}",
                           path.read_text(), flags=re.M))  # fmt: skip
    gang.apply("recipe.py", fewer)
    few = wanted(gang)["release"]
    assert gang.complete() and gang.status()["release"] == few
    gang.apply("rollback.py")
    assert serving(gang) == old
    gang.apply("rollback.py", f"release={few}")
    assert gang.complete() and gang.status()["release"] == few
    command = "command=echo tried"
    assert "tried" in gang.apply("trial.py", variant(recipes, "stub-again-4x", STUB_T="4"), command)
    assert wanted(gang)["release"] == few and gang.complete()
    gang.deploy("stub-4x")
    assert serving(gang) == old
    gang.apply("trial.py", fewer, command)
    assert serving(gang) == old
