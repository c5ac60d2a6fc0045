"""A build outlives whoever started it, is shared by all who want it, and says why it failed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pyinfra_vllm import image_scripts
from pyinfra_vllm.image import LABEL, Build, build_of
from pyinfra_vllm.lab.layout import BASE_IMAGE

from .conftest import Lab
from .scripts import begin, ran

pytestmark = pytest.mark.lab


def plain(root: Path, name: str, *steps: str) -> Build:
    """An image of the base with these steps; its build digest is its own."""
    folder = root / "templates" / "images" / name
    folder.mkdir(parents=True)
    lines = [f"FROM {BASE_IMAGE}", f"RUN echo {root} > /unique", *steps]
    (folder / "Dockerfile").write_text("\n".join(lines) + "\n")
    return build_of(name, None, f"toy/{name}:1")


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def active(lab: Lab, build: Build) -> bool:
    unit = image_scripts.build_unit(build)
    return lab.ask(0, f"systemctl is-active {unit} || true") in ("active", "activating")


def wait_until_active(lab: Lab, build: Build) -> None:
    deadline = time.monotonic() + 20
    while not active(lab, build):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_build_leaves_a_labelled_image_and_no_trace(lab: Lab, tmp_path: Path) -> None:
    build = plain(tmp_path, "quick", "RUN true")
    code, out, err = ran(lab, image_scripts.building(build))
    assert code == 0, err
    assert "built sha256:" in out
    label = f"docker image inspect --format '{{{{index .Config.Labels \"{LABEL}\"}}}}' {build.tag}"
    assert lab.ask(0, label) == build.digest
    assert lab.ask(0, f"ls /var/lib/pyinfra-vllm/builds/{build.digest} 2>&1 || true").startswith(
        "ls:"
    )
    assert ran(lab, image_scripts.building(build)) == (0, "", "")


def test_a_cut_connection_leaves_the_build_running_and_the_next_run_finds_it(
    lab: Lab, tmp_path: Path
) -> None:
    build = plain(tmp_path, "slow", "RUN echo the first step", "RUN sleep 12", "RUN echo last")
    script = image_scripts.building(build)
    first = begin(lab, script)
    wait_until_active(lab, build)
    first.kill()
    first.communicate()
    time.sleep(1)
    assert active(lab, build)
    second, third = begin(lab, script), begin(lab, script)
    for one in (second, third):
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        assert "another run builds it already" in out
    started = "journalctl --output cat --quiet --unit " + image_scripts.build_unit(build)
    assert lab.ask(0, f"{started} | grep -c 'RUN sleep 12$'") == "1"


def test_progress_says_step_time_and_last_line(lab: Lab, tmp_path: Path) -> None:
    build = plain(tmp_path, "talk", "RUN for n in 1 2 3 4 5; do echo line $n; sleep 1; done")
    script = image_scripts.building(build).replace("_SAY_EVERY = 15.0", "_SAY_EVERY = 1.0")
    code, out, err = ran(lab, script)
    assert code == 0, err
    assert "step 3/3, " in out
    assert "RUN for n in" in out
    assert ": line 3" in out


def test_a_failed_build_shows_the_last_lines_of_the_step_that_failed(
    lab: Lab, tmp_path: Path
) -> None:
    build = plain(tmp_path, "fails", "RUN seq 1 100; echo the reason >&2; exit 3")
    code, _, err = ran(lab, image_scripts.building(build))
    assert code == 1
    shown = err.splitlines()
    assert "RUN seq 1 100" in err
    assert {"the reason", "62", "100"} <= set(shown)
    assert "61" not in shown
    assert "journalctl _SYSTEMD_INVOCATION_ID=" in err
    assert lab.ask(0, f"docker image ls -q {build.tag}") == ""
    again, _, err = ran(lab, image_scripts.building(build))
    assert (again, "the reason" in err) == (1, True)


def test_a_build_without_room_is_not_started(lab: Lab, tmp_path: Path) -> None:
    build = plain(tmp_path, "big")
    script = image_scripts.building(build).replace('"disk_gib": 10', '"disk_gib": 99999')
    code, _, err = ran(lab, script)
    assert code == 1
    assert "GiB free, the build needs 99999 GiB" in err
    assert not active(lab, build)
