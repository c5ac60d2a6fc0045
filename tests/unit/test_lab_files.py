"""Files and command lines of a machine, without a machine."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import cgroup, disk, host, keeper, keys, root
from pyinfra_vllm.lab.layout import Layout

LAB = Layout("lab", ipaddress.IPv4Network("10.213.7.0/24"))
TREE = Path(root.__file__).parent / "tree"

V1 = """
25 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw
26 25 0:21 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset
27 25 0:22 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
28 25 0:23 / /elsewhere/unified rw,relatime - cgroup2 cgroup2 rw
""".strip()


def test_all_hierarchies_of_a_mixed_host_are_found() -> None:
    found = cgroup.hierarchies(V1)
    assert [(str(h.mount), h.unified) for h in found] == [
        ("/sys/fs/cgroup/cpuset", False),
        ("/sys/fs/cgroup/unified", True),
    ]


def test_a_host_with_cgroup_v2_alone_has_one_hierarchy() -> None:
    text = "25 1 0:20 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate"
    assert cgroup.hierarchies(text) == (cgroup.Hierarchy(Path("/sys/fs/cgroup"), True),)


def test_a_machine_boots_with_its_own_root_docker_disk_and_bridge() -> None:
    assert keeper.nspawn(LAB, LAB.machines[1]) == [
        "systemd-nspawn",
        "--quiet",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--console=pipe",
        "--directory=/var/lib/pyinfra-vllm-lab/lab/machines/lab-1/root",
        "--machine=lab-1",
        "--network-bridge=vl-lab",
        "--bind=/var/lib/pyinfra-vllm-lab/lab/machines/lab-1/docker:/var/lib/docker",
        "--bind-ro=/var/lib/pyinfra-vllm-lab/lab/nas:/mnt/nas",
        "--capability=all",
        "--system-call-filter=@keyring bpf",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
    ]


def test_tmp_of_a_machine_stays_on_its_root() -> None:
    assert keeper.environ()["SYSTEMD_NSPAWN_TMPFS_TMP"] == "0"


def test_ssh_asks_nothing_and_leaves_the_users_files_alone() -> None:
    text = keys.ssh_config(LAB)
    assert "Host lab-3\n  HostName 10.213.7.13\n" in text
    assert "UserKnownHostsFile /var/lib/pyinfra-vllm-lab/lab/keys/known_hosts\n" in text
    assert "StrictHostKeyChecking yes\n" in text


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr("pyinfra_vllm.lab.layout.STATE", tmp_path)
    monkeypatch.setattr("pyinfra_vllm.lab.network.mtu", lambda: 1400)
    for key in (LAB.key, *(keys.host_key(LAB, machine) for machine in LAB.machines)):
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_text(f"private {key.name}\n")
        key.with_name(key.name + ".pub").write_text(f"ssh-ed25519 {key.name}\n")
    return LAB


def test_nodes_differ_in_name_address_host_key_and_machine_id(lab: Layout) -> None:
    every = [disk.files(lab, machine) for machine in lab.machines]
    for path in (
        "etc/hostname",
        "etc/machine-id",
        "etc/ssh/ssh_host_ed25519_key",
        "etc/systemd/network/10-lab.network",
    ):
        assert len({files[path] for files in every}) == len(every), path


def test_private_files_are_private(lab: Layout) -> None:
    files = disk.files(lab, lab.machines[0])
    private = {path for path, (_, mode) in files.items() if mode == 0o600}
    assert private == {
        "etc/ssh/ssh_host_ed25519_key",
        "root/.docker/config.json",
        "root/.ssh/authorized_keys",
    }


@pytest.mark.parametrize("lacks", [True, False])
def test_limits_are_dropped_only_where_this_machine_cant_raise_them(
    lab: Layout, monkeypatch: pytest.MonkeyPatch, lacks: bool
) -> None:
    monkeypatch.setattr(disk, "lacks_sys_resource", lambda: lacks)
    text, _ = disk.files(lab, lab.machines[0])["etc/docker/daemon.json"]
    assert (json.loads(text).get("default-runtime") == "lab") is lacks
    assert json.loads(text)["mtu"] == 1400


def test_runc_wrapper_drops_the_limits_and_keeps_the_rest(tmp_path: Path) -> None:
    spec = {"process": {"args": ["true"], "rlimits": [{"type": "RLIMIT_MEMLOCK"}]}, "root": {}}
    (tmp_path / "config.json").write_text(json.dumps(spec))
    words = ["--root", "/r", "create", "--bundle", str(tmp_path), "id"]
    wrapper = [sys.executable, str(TREE / "usr/local/sbin/lab-runc")]
    done = subprocess.run(
        [*wrapper, *words],
        env=os.environ | {"LAB_RUNC": "/bin/echo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == words
    assert json.loads((tmp_path / "config.json").read_text()) == {
        "process": {"args": ["true"]},
        "root": {},
    }


def test_files_in_bin_folders_run_and_others_do_not(tmp_path: Path) -> None:
    root.copy_tree(TREE, tmp_path)
    running = {
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o111
    }
    assert running == {
        "usr/local/bin/nvidia-container-runtime-hook",
        "usr/local/sbin/lab-runc",
    }


def test_a_machine_without_apt_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyinfra_vllm.lab.shell import Steps

    monkeypatch.setattr(host, "require_root", lambda: None)
    monkeypatch.setattr(host, "missing_packages", lambda: ["mmdebstrap", "systemd-container"])
    monkeypatch.setattr("shutil.which", lambda command: None)
    with pytest.raises(UserError, match=r"Debian and Ubuntu only.*mmdebstrap, systemd-container"):
        host.require(Steps())


def test_other_systems_than_linux_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyinfra_vllm.lab.shell import Steps

    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="needs Linux; this is darwin"):
        host.require(Steps())


def test_without_root_the_lab_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        host.require_root()


def test_missing_commands_are_named_by_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda command: None if "ssh" in command else "/bin/x")
    monkeypatch.setattr(host, "KEYRING", Path("/nowhere"))
    assert host.missing_packages() == ["debian-archive-keyring", "openssh-client"]
