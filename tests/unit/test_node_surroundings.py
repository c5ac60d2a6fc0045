"""Mounts, kernel, pending upgrades, ageing, foreign engines, other nodes."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from pyinfra_vllm.node.collect import kernel, leftovers, mounts, peers

MOUNTINFO = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 22 0:27 / /tmp rw,nosuid shared:5 - tmpfs tmpfs rw,size=8g
40 22 0:41 / /mnt/nas ro,relatime shared:9 - nfs4 nas:/models ro,vers=4.2,addr=10.0.0.9
41 22 0:42 / /mnt/with\040space rw - ext4 /dev/vdb rw
42 40 0:43 / /mnt/nas rw - ext4 /dev/vdc rw
"""


def test_a_path_is_on_the_mount_with_the_longest_mount_point() -> None:
    table = mounts.read_table(MOUNTINFO)
    for path, kind in (
        ("/tmp/composed-models", "tmpfs"),
        ("/tmpfoo", "ext4"),
        ("/mnt/with space/x", "ext4"),
        ("/var", "ext4"),
    ):
        found = mounts.mount_of(path, table)
        assert found is not None and found["type"] == kind, path
    found = mounts.mount_of("/mnt/nas/hub", table)
    assert found is not None and found["source"] == "/dev/vdc", "the later one hides the NAS"
    assert "rw" in found["options"]


def test_every_path_of_this_machine_is_on_some_mount() -> None:
    found = mounts.mounts(["/", "/tmp", "/no/such/path"])
    assert all(found.values())


def test_the_newest_kernel_of_the_same_flavour_is_what_a_reboot_brings() -> None:
    boot = [
        "vmlinuz-6.11.0-1016-nvidia",
        "vmlinuz-6.11.0-1009-nvidia",
        "vmlinuz-6.14.0-24-generic",
        "config-6.17.0-1-nvidia",
        "vmlinuz",
    ]
    assert kernel.newest_kernel(boot, "6.11.0-1009-nvidia") == "6.11.0-1016-nvidia"
    assert kernel.newest_kernel([], "6.11.0-1009-nvidia") is None


def test_dockers_version_is_read_from_its_own_words() -> None:
    assert kernel.docker_version("Docker version 28.3.3, build 980b856") == "28.3.3"
    assert kernel.docker_version("") is None


def test_settings_that_this_kernel_lacks_are_none() -> None:
    found = kernel.sysctls()
    assert set(found) == set(kernel.SYSCTLS)
    assert found["vm.swappiness"] is not None


def test_the_clock_says_whether_it_is_synchronised_or_that_it_cannot_tell() -> None:
    assert kernel.clock()["synchronised"] in (True, False, None)


RULES = """# /usr/lib/tmpfiles.d/tmp.conf
q /tmp 1777 root root 10d
d /var/tmp 1777 root root 30d
D! /tmp/.X11-unix 1777 root root 10d
d /run/lock 1777 root root 5d
x /tmp/composed-models
d /tmp/kept 0755 root root -
"""


def test_rules_that_age_and_rules_that_keep_are_told_apart() -> None:
    found = {rule["path"]: (rule["type"], rule["age"]) for rule in leftovers.rules(RULES)}
    assert found == {
        "/tmp": ("q", "10d"),
        "/var/tmp": ("d", "30d"),
        "/tmp/.X11-unix": ("D!", "10d"),
        "/tmp/composed-models": ("x", None),
    }


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/python3 /usr/local/bin/vllm serve /model",
        "python3 -m vllm.entrypoints.openai.api_server",
        "VLLM::EngineCore",
        "/usr/local/bin/ollama serve",
        "llama-server -m x.gguf",
        "python -m sglang.launch_server",
    ],
)
def test_an_engine_is_known_by_its_command(line: str) -> None:
    assert leftovers.is_engine(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "python3 -IS - pyinfra-vllm.state.v1",
        "/usr/bin/python3 -I /usr/local/lib/pyinfra-vllm/agent.pyz run main",
        "vim vllm.py",
        "docker run vllm serve",
        "python3 train.py --vllm",
    ],
)
def test_other_programs_are_no_engines(line: str) -> None:
    assert not leftovers.is_engine(line.split())


def test_what_lies_on_a_node_is_named(tmp_path: Path) -> None:
    for folder in ("state/main/releases", "state/share", "models/main/abc", "units"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "units" / "vllm-main.service").touch()
    (tmp_path / "units" / "ssh.service").touch()
    found = leftovers.leftovers(*(str(tmp_path / name) for name in ("state", "units", "models")))
    assert found == {
        "gangs": ["main"],
        "units": ["vllm-main.service"],
        "composed": ["main/abc"],
        "share": True,
    }


def test_a_peer_answers_when_it_accepts_and_when_it_refuses() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert peers.peers(["127.0.0.1"], port) == {
            "127.0.0.1": {"source": "127.0.0.1", "answer": "open"}
        }
    assert peers.peers(["127.0.0.1"], port)["127.0.0.1"]["answer"] == "refused"


def test_silence_and_refusal_are_not_the_same() -> None:
    assert peers.answer_of(errno.EINPROGRESS) == "no answer"
    assert peers.answer_of(errno.ECONNREFUSED) == "refused"
    assert peers.answer_of(errno.EHOSTUNREACH) == "No route to host"
