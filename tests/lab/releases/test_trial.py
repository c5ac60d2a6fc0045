"""Trials: one's own command against a release that is only lent."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..stub.gang import HERE, Gang
from .changing import begin, served, serving, unlock, variant, wanted

pytestmark = pytest.mark.lab

_ASKS = (
    "printf '%s %s\\n' $PYINFRA_VLLM_MODEL $PYINFRA_VLLM_RELEASE; "
    'curl -sf $PYINFRA_VLLM_URL/completions -d \'{"model": "tiny", "prompt": "x"}\''
)


@pytest.fixture
def kept(gang: Gang) -> Iterator[Path]:
    """Where trials leave their results."""
    folder = HERE / "trials"
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    unlock(gang)
    begin(gang)


def results(kept: Path) -> dict[str, dict[str, object]]:
    """Recipe -> its result."""
    found = [json.loads(path.read_text()) for path in kept.glob("*/result.json")]
    return {str(result["recipe"]): result for result in found}


def wait_for(path: Path, pattern: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not list(path.glob(pattern)):
        assert time.monotonic() < end
        time.sleep(0.5)


def test_command_runs_against_the_release_and_the_gang_goes_back_whatever_happens(
    gang: Gang, tmp_path: Path, kept: Path
) -> None:
    old = begin(gang)
    gang.apply("trial.py", variant(tmp_path, "stub-good-4x", STUB_T="1"), f"command={_ASKS}")
    assert serving(gang) == old
    good = results(kept)["stub-good-4x"]
    (output,) = kept.glob("*stub-good-4x*/output.txt")
    assert (good["code"], good["whole"]) == (0, True)
    assert output.read_text().startswith(f"tiny {good['release']}\n")
    assert "choices" in output.read_text()

    # ^C while the command runs: it is ended, and the gang goes back.
    run = gang.begin("trial.py", variant(tmp_path, "stub-cut-4x", STUB_T="2"), "command=sleep 600")
    wait_for(kept, "*stub-cut-4x*/output.txt")
    run.send_signal(signal.SIGINT)
    assert run.wait(120) == 1
    assert serving(gang) == old
    assert results(kept)["stub-cut-4x"]["code"] == 130

    # The controller is killed: the head goes back when its lease is over.
    recipe = variant(tmp_path, "stub-gone-4x", STUB_T="3")
    run = gang.begin("trial.py", recipe, "command=sleep 5", "lease=12")
    wait_for(kept, "*stub-gone-4x*/output.txt")
    run.kill()
    run.communicate()
    end = time.monotonic() + 60
    while wanted(gang)["release"] != old:
        assert time.monotonic() < end
        time.sleep(0.5)
    assert "nobody who runs the trial was heard of" in wanted(gang)["back"]["why"]
    assert serving(gang) == old


@pytest.mark.soak
@pytest.mark.usefixtures("kept")
def test_a_deploy_keeps_what_a_lost_trial_was_lent(gang: Gang, tmp_path: Path) -> None:
    old = begin(gang)
    recipe = variant(tmp_path, "stub-kept-4x", STUB_T="6")
    run = gang.begin("trial.py", recipe, f"command=touch {tmp_path}/tried; sleep 900", "lease=15")
    wait_for(tmp_path, "tried")
    run.kill()
    run.communicate()
    before = gang.status()["start"]
    output = gang.apply("recipe.py", recipe)
    assert "Gang: lent release kept" in output
    assert wanted(gang)["lease"] is None and wanted(gang)["previous"] == old
    release = wanted(gang)["release"]
    time.sleep(20)
    assert wanted(gang)["release"] == release == served(gang)
    assert gang.status()["start"] == before
    assert "changed     nothing" in gang.apply("recipe.py", recipe)
    gang.apply("rollback.py")
    assert serving(gang) == old


def test_trial_needs_a_command(gang: Gang) -> None:
    assert "which command is to run?" in gang.fails("trial.py", "recipe=stub-4x")
