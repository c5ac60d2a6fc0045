"""The script itself, as it runs on a node, and the fact through pyinfra."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import get_facts

from fake_dockerd import dockerd
from pyinfra_vllm.facts import node
from pyinfra_vllm.node import NodeState, Query, SnapshotQuery, parse, script

DEADLINE = 1.0
SLACK = 5.0  # an idle machine needs 0.2 s, one with four labs on two cores more than 2


def read(query: Query, python: str = sys.executable, **environ: str) -> tuple[NodeState, float]:
    """Run the script as a node does; the state and the seconds that it took."""
    started = time.monotonic()
    done = subprocess.run(
        [python, "-IS", "-", node.NAME],
        input=script(query),
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return parse(done.stdout), time.monotonic() - started


def query_below(root: Path, **more: Any) -> Query:
    places = {"state_root": str(root / "state"), "agent_path": str(root / "agent.pyz")}
    return Query(status_path=str(root / "status.json"), **{**places, **more})


def command(folder: Path, name: str, text: str) -> None:
    """A program on a PATH of our own."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def is_gone(pid: str) -> bool:
    """Whether a process ends within ten seconds; who reaps it is not our concern."""
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_machine_without_docker_is_read_but_for_docker(tmp_path: Path) -> None:
    state, seconds = read(
        query_below(tmp_path), DOCKER_HOST=f"unix://{tmp_path}/none", PATH="/nowhere"
    )
    assert {"docker", "images", "containers"} <= set(state.failures())
    assert state.failures()["docker"] == "docker: not installed"
    assert state.known and state.system.required.hostname == os.uname().nodename
    assert state.has_address("127.0.0.1")
    assert seconds < SLACK


def test_a_machine_with_docker_tells_of_it(tmp_path: Path) -> None:
    answers = {
        "/info": {"ServerVersion": "28.2.2", "DockerRootDir": "/", "Driver": "overlay2"},
        "/images/json": [],
        "/containers/json": [],
    }
    with dockerd(tmp_path / "docker.sock", answers) as host:
        state, _ = read(query_below(tmp_path), DOCKER_HOST=host)
    assert state.docker.required.version == "28.2.2"
    assert state.images.required == () and state.containers.required == ()


def test_a_stopped_daemon_costs_its_parts_and_no_more_than_the_deadline(tmp_path: Path) -> None:
    query = query_below(tmp_path, deadline=DEADLINE)
    with dockerd(tmp_path / "docker.sock", None) as host:
        state, seconds = read(query, DOCKER_HOST=host)
    for part in ("docker", "images", "containers"):
        assert state.failures()[part] == "dockerd: no answer in 1 s"
    assert state.known and state.gang.ok and state.interfaces.ok
    assert DEADLINE < seconds < DEADLINE + SLACK


def test_programs_that_never_end_are_killed_at_the_deadline(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    for name in ("docker", "systemctl", "ip"):
        command(tmp_path / "bin", name, f"echo $$ >> {pids}; exec sleep 600")
    state, seconds = read(
        query_below(tmp_path, deadline=DEADLINE),
        DOCKER_HOST=f"unix://{tmp_path}/none",
        PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
    )
    assert {"docker", "unit", "interfaces"} <= set(state.failures())
    assert state.failures()["unit"] == "systemd: no answer in 1 s"
    assert seconds < DEADLINE + SLACK
    assert all(map(is_gone, pids.read_text().split()))


def test_a_cache_that_never_answers_costs_only_the_snapshots(tmp_path: Path) -> None:
    """A FIFO that nobody writes to blocks whoever opens it, as a dead NFS server does."""
    refs = tmp_path / "hub" / "models--a--b" / "refs"
    refs.mkdir(parents=True)
    os.mkfifo(refs / "main")
    asked = (SnapshotQuery(hub=str(tmp_path / "hub"), repo="a/b"),)
    state, seconds = read(query_below(tmp_path, snapshots=asked, deadline=DEADLINE))
    assert state.failures()["snapshots"] == f"the file system of {tmp_path}/hub: no answer in 1 s"
    assert state.known and state.files.ok and state.local_files.ok
    assert seconds < DEADLINE + SLACK


def test_everything_asked_for_is_told(tmp_path: Path) -> None:
    digest = "a" * 64
    release = tmp_path / "state" / "main" / "releases" / digest
    release.mkdir(parents=True)
    (release / "launch.json").write_text("{}\n")
    (tmp_path / "state" / "main" / "current").symlink_to(f"releases/{digest}")
    (tmp_path / "agent.pyz").write_bytes(b"zip")
    (tmp_path / "status.json").write_text(json.dumps({"schema": 1, "phase": "serving"}))
    unit = tmp_path / "vllm-main.service"
    unit.write_text("[Unit]\n")
    state, _ = read(
        query_below(
            tmp_path,
            files=(str(unit), str(tmp_path / "absent")),
            local_files=(str(unit),),
            composed=(str(release),),
        )
    )
    assert state.current_release == digest
    found = state.release(digest)
    assert found is not None and found.files["launch.json"].text == "{}\n"
    text = state.file(str(unit))
    assert text is not None and text.text == "[Unit]\n"
    assert state.file(str(tmp_path / "absent")) is None
    local = state.local_file(str(unit))
    assert local is not None and local.inode == unit.stat().st_ino
    composed = state.composed_directory(str(release))
    assert composed is not None and composed.entries["launch.json"].type == "file"
    status = state.agent.required.status
    assert status is not None and status.phase == "serving"
    assert state.agent.required.sha256 is not None


def test_the_folder_and_the_environment_of_the_caller_do_not_reach_the_script(
    tmp_path: Path,
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    done = subprocess.run(
        [sys.executable, "-IS", "-", node.NAME],
        input=script(query_below(tmp_path)),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert parse(done.stdout).known


@pytest.mark.parametrize("locale", ["C", "de_DE.ISO-8859-1"])
def test_names_outside_ascii_are_told_whatever_the_locale(tmp_path: Path, locale: str) -> None:
    path = tmp_path / "größe"
    path.write_text("→\n")
    state, _ = read(query_below(tmp_path, files=(str(path),)), LC_ALL=locale, LANG=locale)
    found = state.file(str(path))
    assert found is not None and found.text == "→\n"


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_supported_python_reads_the_state(version: str, tmp_path: Path) -> None:
    python = shutil.which(f"python{version}")
    if not python or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"no python{version} on this machine")
    state, _ = read(query_below(tmp_path), python=python)
    assert state.system.required.python.startswith(f"{version}.")


# The fact, through pyinfra's own API.


def facts_of(monkeypatch: pytest.MonkeyPatch, **environ: str) -> tuple[Any, State]:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    state = State(Inventory((["@local"], {})), Config())
    connect_all(state)
    arguments = node.NodeState.arguments(Query())
    try:
        (found,) = get_facts(state, node.NodeState, kwargs=arguments).values()
    except PyinfraError as error:  # the only host has failed
        assert str(error) == "No hosts remaining!"
        found = None
    return found, state


def test_the_fact_gives_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    found, state = facts_of(monkeypatch)
    assert isinstance(found, NodeState) and found.known
    assert not state.failed_hosts


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("exit 127", "python3 is not installed on the node"),
        ("echo Killed >&2; exit 137", "Killed | pyinfra-vllm.state.v1 failed with exit status 137"),
        ("echo pyinfra-vllm needs python3 '>=' 3.10; exit 3", "needs python3 >= 3.10"),
        ("echo hello", "no state document but: hello"),
    ],
)
def test_a_script_that_fails_fails_the_host_with_one_clear_line(
    program: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    command(tmp_path / "bin", "python3", f"cat > /dev/null; {program}")
    found, state = facts_of(monkeypatch, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert found is None
    assert [host.name for host in state.failed_hosts] == ["@local"]
    assert message in caplog.text and "Traceback" not in caplog.text


def test_an_old_python_says_what_is_needed(tmp_path: Path) -> None:
    text = script(query_below(tmp_path)).replace("sys.version_info < (3, 10)", "True")
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 3
    assert "needs python3 >= 3.10 on the node" in done.stdout


def test_a_saved_state_stands_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = NodeState().model_dump_json(by_alias=True)
    data = {"fake_responses": {node.NAME: saved}, "fake_delay": 0, "fake_delay_jitter": 0}
    state = State(Inventory((["@fake/spark-1"], data)), Config())
    connect_all(state)
    (found,) = get_facts(state, node.NodeState, kwargs=node.NodeState.arguments(Query())).values()
    assert found == NodeState()


def test_the_script_is_not_printed_with_the_arguments_of_the_fact() -> None:
    assert str(node.NodeState.arguments(Query())) == "{'_stdin': <pyinfra-vllm.state.v1>}"


def test_a_signal_to_the_reader_leaves_no_process_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command(tmp_path / "bin", "systemctl", f"echo $$ >> {pids}; exec sleep 600")
    reader = subprocess.Popen(
        [sys.executable, "-IS", "-", node.NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
    )
    assert reader.stdin
    reader.stdin.write(script(query_below(tmp_path, deadline=30)))
    reader.stdin.close()
    while not pids.exists() or not pids.read_text():
        time.sleep(0.02)
    reader.send_signal(signal.SIGTERM)
    reader.wait(10)
    assert is_gone(pids.read_text().strip())
