"""Command lines, launch.json, gates, jobs, docker and the status file of the agent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import container, docker, gates, jobs, launch, paths, status
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.launch import Launch, Mount


def _document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "gang": "main",
        "release": "a" * 64,
        "recipe": "tiny",
        "rank": 0,
        "size": 2,
        "image": {"build": "c" * 64, "tag": "tiny:local"},
        "container": "vllm-main",
        "labels": {paths.LABEL_GANG: "main"},
        "options": ["--network", "host"],
        "mounts": [],
        "environ": {"A": "one two", "B": ""},
        "argv": ["vllm", "serve", "/model", "--master-port", "29501"],
        "composed": None,
        "api": {"address": "127.0.0.1", "port": 8000, "model": "tiny"},
        "start_timeout": 60,
        "a key of a later version": 1,
    } | changes


def _launch(**changes: Any) -> Launch:
    return launch.parse(Document("launch.json", _document(**changes)))


def test_command_line_is_complete_and_in_order() -> None:
    mounts = [
        {"source": "/hub", "target": "/hub", "read_only": True, "create": False},
        {"source": "/a,b", "target": "/c", "read_only": False, "create": True},
    ]
    assert container.run(_launch(mounts=mounts), "sha256:1") == [
        *["docker", "run", "--name", "vllm-main"],
        *["--label", "pyinfra-vllm.gang=main"],
        *["--log-driver", "none"],
        *["--network", "host"],
        *["--mount", "type=bind,source=/hub,target=/hub,readonly"],
        *["--mount", 'type=bind,"source=/a,b",target=/c'],
        *["--env", "A=one two", "--env", "B="],
        *["--entrypoint", "vllm", "sha256:1", "serve", "/model", "--master-port", "29501"],
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rank": "0"}, 'rank: expected an integer, got "0"'),
        ({"rank": True}, "rank: expected an integer, got true"),
        ({"rank": 2}, "rank: 2 is not below size 2"),
        ({"mounts": [{"source": "x"}]}, "mounts[0].source: expected an absolute path"),
        ({"mounts": [{"source": "/x/../y"}]}, "mounts[0].source: expected an absolute path"),
        ({"environ": {"A": 1}}, "environ.A: expected a string, got 1"),
        ({"argv": []}, "argv: is empty"),
        ({"argv": ["a", 1]}, "argv.1: expected a string, got 1"),
        ({"api": {"address": "x"}}, "api.port: is missing"),
        ({"labels": {}}, "could not find its own container"),
    ],
)
def test_broken_launch_names_file_key_and_what_was_expected(
    changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(Unmet) as unmet:
        _launch(**changes)
    assert "launch.json" in str(unmet.value) and expected in str(unmet.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "is not there; run the deploy"),
        ("{", "is no JSON"),
        ('{"schema": 2}', "schema 2 is not known to this agent"),
        ("[]", "the document: expected a table"),
    ],
)
def test_launch_file_that_cannot_be_read_says_why(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    if text is not None:
        (tmp_path / paths.LAUNCH).write_text(text)
    with pytest.raises(Unmet, match=expected):
        launch.load(tmp_path)


def test_launch_of_another_gang_is_refused(tmp_path: Path) -> None:
    (tmp_path / paths.LAUNCH).write_text(json.dumps(_document()))
    with pytest.raises(Unmet, match="gang: is 'main', expected 'other'"):
        launch.load(tmp_path, "other")


def test_missing_mount_is_named_and_a_cache_is_made(tmp_path: Path) -> None:
    cache = Mount(str(tmp_path / "cache" / "x"), "/cache", False, True)
    gates.check_mounts((cache,), None)
    assert (tmp_path / "cache" / "x").is_dir()
    with pytest.raises(Unmet, match=f"{tmp_path}/nas is not on this node.*at /hub"):
        gates.check_mounts((Mount(str(tmp_path / "nas"), "/hub", True, False),), None)


def test_empty_read_only_folder_is_a_file_system_that_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(Unmet, match="is its file system mounted"):
        gates.check_mounts((Mount(str(tmp_path), "/hub", True, False),), None)
    gates.check_mounts((Mount(str(tmp_path), "/model", True, False),), str(tmp_path))


def test_fabric_address_must_be_on_an_interface() -> None:
    gates.check_address("127.0.0.1")
    gates.check_address(None)
    with pytest.raises(Unmet, match=r"192.0.2.1 is on no interface"):
        gates.check_address("192.0.2.1")
    with pytest.raises(Unmet, match="is no address"):
        gates.check_address("head.example")


def test_port_that_is_taken_names_who_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Unmet, match=f"port {port} is taken by pid {os.getpid()} "):
            gates.check_ports((port,))
    gates.check_ports((port,))


def test_head_needs_its_ports_and_a_worker_none() -> None:
    assert gates.ports(_launch()) == (8000, 29501)
    assert gates.ports(_launch(rank=1)) == ()


def _docker(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_docker_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _docker(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(Unmet, match="docker doesn't answer"):
        docker.ask(["docker", "ps"], seconds=0.3)


def test_docker_that_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unmet, match="docker is not installed"):
        docker.ask(["docker", "ps"])


def test_image_of_the_build_that_has_the_tag_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _docker(monkeypatch, tmp_path, '[ "$2" = ls ] && printf "sha256:2\\nsha256:1\\n" || echo $ID')
    monkeypatch.setenv("ID", "sha256:1")
    assert docker.image_id(_launch()) == "sha256:1"
    monkeypatch.setenv("ID", "sha256:9")
    assert docker.image_id(_launch()) == "sha256:2"
    assert docker.image_id(_launch(image={"build": None, "tag": "t"})) == "sha256:9"


def _words(job: jobs.Job) -> list[dict[str, Any]]:
    words: list[dict[str, Any]] = []
    try:
        while True:
            words += list(job.words())
    except EOFError:
        os.close(job.reader)
        return words


def _is_gone(job: jobs.Job) -> bool:
    end = time.monotonic() + 5
    while not job.is_gone():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_job_answers_in_documents_and_leaves_no_zombie() -> None:
    job = jobs.start("ask", lambda say: [say(n=n) for n in range(3)] and None, 5, 5)
    assert _words(job) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert _is_gone(job) and not Path(f"/proc/{job.pid}").exists()


def test_job_that_hangs_is_late_and_dies_with_what_it_started() -> None:
    def hang(say: jobs.Say) -> None:
        child = subprocess.Popen(["sleep", "60"])
        say(child=child.pid)
        child.wait()

    job = jobs.start("prepare", hang, 0.2, 60)
    (word,) = job.words()
    assert not job.is_late(time.monotonic())
    assert job.is_late(time.monotonic() + 0.3)
    job.kill()
    assert _is_gone(job)
    os.close(job.reader)
    state = Path(f"/proc/{word['child']}/cmdline")
    assert not state.exists() or state.read_bytes() == b""


def test_job_without_a_parent_ends_itself() -> None:
    job = jobs.start("clear", lambda say: time.sleep(60), 60, 1)
    assert _words(job) == []
    assert _is_gone(job)


def test_failure_survives_the_agent_that_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "main" / "status.json"
    failure = status.Failure(5.0, 137, "r", "killed")
    said = status.Status("d", os.getpid(), "main", "r", 0, "failed", 1.0, "x", 2.0, failure)
    status.write(file, said)
    assert status.last_failure(file) == failure
    document = status.read(file)
    assert document is not None and document["schema"] == 1 and status.runs(document)
    assert [path.name for path in file.parent.iterdir()] == ["status.json"]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"last_failure": {"at": "x"}}'])
def test_status_file_of_whatever_content_stops_nobody(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "status.json"
    if text is not None:
        file.write_text(text)
    assert status.last_failure(file) is None


@pytest.mark.parametrize("name", ["", "Main", "a/b", "-x", "a b", "x" * 33])
def test_gang_name_that_cannot_be_in_a_path_is_refused(name: str) -> None:
    with pytest.raises(Unmet):
        paths.checked_gang(name)


def test_agent_imports_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; sys.path.insert(0, 'deploys'); import pyinfra_vllm.agent.__main__;"
        "own = {m.partition('.')[0] for m in sys.modules};"
        "print(sorted(own - set(sys.stdlib_module_names) - {'__main__', 'pyinfra_vllm'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
