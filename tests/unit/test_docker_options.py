"""A container is confined as the release says: what docker keeps against what it was told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyinfra_vllm.docker_options import differences, size, told
from pyinfra_vllm.node.collect.options import options, profile
from pyinfra_vllm.release import Release
from unit.gangs import release

RELEASE: Release = release()
SECCOMP = '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}'
WORDS = (
    "--network", "host",
    "--init",
    "--ipc", "private",
    "--shm-size", "32gb",
    "--gpus", "all",
    "--device", "/dev/infiniband",
    "--cap-add", "IPC_LOCK",
    "--ulimit", "memlock=-1",
    "--ulimit", "stack=67108864",
    "--oom-score-adj", "500",
    "--security-opt", "seccomp=/var/lib/x/seccomp.json",
)  # fmt: skip
KEPT: dict[str, Any] = {
    "NetworkMode": "host", "IpcMode": "private", "PidMode": "", "Init": True, "Privileged": False,
    "ShmSize": 34359738368, "CapAdd": ["CAP_IPC_LOCK"], "CapDrop": None, "OomScoreAdj": 500,
    "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1},
                {"Name": "stack", "Soft": 67108864, "Hard": 67108864}],
    "Devices": [{"PathOnHost": "/dev/infiniband"}], "LogConfig": {"Type": "none", "Config": {}},
    "SecurityOpt": ['seccomp={"syscalls":[],"defaultAction":"SCMP_ACT_ERRNO"}'],
    "Memory": 0, "NanoCpus": 0, "CpuQuota": 0, "CpusetCpus": "", "PidsLimit": None,
}  # fmt: skip
"""``docker inspect`` of a container that was made with :data:`WORDS`."""


def differs(**host: Any) -> list[str]:
    return list(differences(told(WORDS, SECCOMP), options({**KEPT, **host})))


def test_a_container_that_was_made_so_differs_in_nothing() -> None:
    assert differs() == []
    assert differs(PidsLimit=-1, CapAdd=["IPC_LOCK"]) == [], "as other daemons spell it"


@pytest.mark.parametrize(
    ("host", "lines"),
    [
        ({"NetworkMode": "bridge"}, ["--network bridge", "--network host"]),
        ({"IpcMode": "host"}, ["--ipc host", "--ipc private"]),
        ({"PidMode": "host"}, ["--pid host"]),
        ({"Init": None}, ["--init true"]),
        ({"Privileged": True}, ["--privileged true"]),
        ({"ShmSize": 67108864}, ["--shm-size 67108864", "--shm-size 34359738368"]),
        ({"Ulimits": KEPT["Ulimits"][1:]}, ["--ulimit memlock=-1:-1"]),
        ({"CapAdd": None}, ["--cap-add IPC_LOCK"]),
        ({"CapDrop": ["NET_RAW"]}, ["--cap-drop NET_RAW"]),
        ({"Devices": []}, ["--device /dev/infiniband"]),
        ({"OomScoreAdj": 0}, ["--oom-score-adj 500"]),
        ({"LogConfig": {"Type": "json-file"}}, ["--log-driver json-file", "--log-driver none"]),
        ({"Memory": 1 << 30}, ["--memory 1073741824"]),
        ({"CpusetCpus": "0-3"}, ["--cpuset-cpus 0-3"]),
        ({"PidsLimit": 100}, ["--pids-limit 100"]),
        (
            {"SecurityOpt": ["seccomp=unconfined"]},
            ["--security-opt seccomp=unconfined", f"seccomp={profile(SECCOMP)[:12]}"],
        ),
        (
            {"SecurityOpt": [*KEPT["SecurityOpt"], "apparmor=unconfined"]},
            ["--security-opt apparmor=unconfined"],
        ),
    ],
    ids=str,
)
def test_each_difference_is_named_once(host: dict[str, Any], lines: list[str]) -> None:
    found = differs(**host)
    assert len(found) == len(lines)
    for line, said in zip(found, lines, strict=True):
        assert line.endswith(said)


def test_the_last_word_counts_where_docker_takes_one() -> None:
    words = (*WORDS, "--shm-size", "64m", "--ulimit", "stack=1:2", "--cap-add", "SYS_NICE")
    found = told(words, SECCOMP)
    assert found["--shm-size"] == ["67108864"]
    assert found["--ulimit"] == ["memlock=-1:-1", "stack=1:2"]
    assert found["--cap-add"] == ["IPC_LOCK", "SYS_NICE"]


def test_a_limit_of_the_daemons_own_is_no_difference() -> None:
    own = {"Name": "nproc", "Soft": 4096, "Hard": 8192}
    assert differs(Ulimits=[*KEPT["Ulimits"], own]) == []


def test_a_size_that_the_release_leaves_to_docker_is_no_difference() -> None:
    words = tuple(word for word in WORDS if word not in ("--shm-size", "32gb"))
    assert list(differences(told(words, SECCOMP), options(KEPT))) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("64m", 64 << 20), ("32gb", 32 << 30), ("1.5GiB", 3 << 29), ("1024", 1024), ("2 k", 2048)],
)
def test_amounts_of_memory_are_read_as_docker_reads_them(text: str, wanted: int) -> None:
    assert size(text) == wanted


def test_every_option_of_a_release_is_understood() -> None:
    """An option that is added there must be told of a container too."""
    for node in RELEASE.content.gang.nodes:
        files = RELEASE.files(node)
        known = told(json.loads(files["launch.json"])["options"], files["seccomp.json"])
        assert set(known) <= set(options({**KEPT, "CpusetCpus": "1"})) | {"--shm-size"}
