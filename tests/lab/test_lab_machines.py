"""The lab's own promises, tried on labs of these tests' own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyinfra_vllm import cli
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import commands, control, machine, nas, state
from pyinfra_vllm.lab.layout import BASE_IMAGE, CACHE, STATE, WHEELS_IMAGE

from .conftest import Lab, bring_up, require_root

pytestmark = pytest.mark.lab

FIRST, SECOND = "tests1", "tests2"


def traces(name: str) -> dict[str, list[str]]:
    """All that a lab can leave on this machine, by kind; empty lists when there is nothing."""
    processes = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if any(
            sign in read(path).replace("\0", " ")
            for sign in (f"--machine={name}-", f"lab.keeper {name} ")
        )
    ]
    rules = [
        line
        for table in ("nat", "filter")
        for line in output("iptables", "-t", table, "-S").splitlines()
        if f"vl-{name} " in f"{line} "
    ]
    mounts = [
        line for line in read(Path("/proc/self/mountinfo")).splitlines() if f"/{name}/" in line
    ]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/pyinfra-vllm-lab.{name}.*")]
    links = [path.name for path in Path("/sys/class/net").glob(f"v[lb]-{name}*")]
    left = [str(path) for path in STATE.glob(name)]
    left += [str(path) for path in Path("/run/systemd/nspawn/propagate").glob(f"{name}-*")]
    return {
        "processes": processes,
        "mounts": mounts,
        "rules": rules,
        "groups": groups,
        "links": links,
        "files": left,
    }


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def own() -> Iterator[Lab]:
    require_root()
    layout = bring_up(FIRST)
    yield Lab(layout)
    commands.down(FIRST)
    assert not any(traces(FIRST).values()), traces(FIRST)


def test_every_node_is_a_running_system_without_failed_units(own: Lab) -> None:
    for rank, node in enumerate(own.machines):
        host = own.host(rank)
        assert own.ask(rank, "systemctl is-system-running --wait") == "running"
        assert host.check_output("hostname") == node.name
        assert host.service("docker").is_running
        assert host.interface("host0").addresses[0] == node.address
    ids = {own.ask(rank, "cat /etc/machine-id") for rank in range(4)}
    assert len(ids) == 4


def test_tmp_and_var_tmp_are_one_file_system_and_hard_links_work(own: Lab) -> None:
    shard = f"/{nas.LOCAL_SHARD}"
    own.ask(1, f"ln {shard} /tmp/linked && test {shard} -ef /tmp/linked && rm /tmp/linked")


def test_dockerd_keeps_images_as_overlay2_on_a_disk_of_its_own(own: Lab) -> None:
    assert own.ask(2, "docker info --format '{{.Driver}}'") == "overlay2"
    assert own.ask(2, "stat -f -c %T /var/lib/docker") != own.ask(2, "stat -f -c %T /")


def test_the_model_is_on_the_nas_read_only_and_its_shard_on_the_node(own: Lab) -> None:
    snapshots = "/mnt/nas/hub/models--tiny-random--llama-tp4/snapshots"
    shard = Path(nas.LOCAL_SHARD).name
    for rank in range(4):
        own.ask(rank, f"cmp {snapshots}/*/{shard} /{nas.LOCAL_SHARD}")
        with pytest.raises(UserError, match="Read-only file system"):
            own.ask(rank, "touch /mnt/nas/hub/x")


def test_command_lines_of_a_gpu_node_are_accepted(own: Lab) -> None:
    flags = (
        "--rm --init --network host --ipc host --ulimit memlock=-1 --ulimit nofile=1048576 "
        "--gpus all --device /dev/infiniband"
    )
    said = own.ask(0, f"docker run {flags} {BASE_IMAGE} ls /dev/infiniband")
    assert said.split() == ["rdma_cm", "uverbs0"]


def test_nodes_reach_each_other(own: Lab) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda rank: own.ask(rank, f"ping -c1 -W2 {FIRST}-{3 - rank}"), range(4)))


def test_builds_on_the_head_reach_mirrors_and_the_wheels(own: Lab) -> None:
    dockerfile = (
        f"FROM {BASE_IMAGE}\n"
        f"RUN --mount=type=bind,from={WHEELS_IMAGE},source=/wheels,target=/wheels "
        "ls /wheels/torch-*+cpu-cp311-*.whl && apt-get update && "
        "python3 -m venv /v && /v/bin/pip install six\n"
    )
    for network in ("host", "default"):
        own.ask(
            0,
            f"printf %s '{dockerfile}' | "
            f"DOCKER_BUILDKIT=1 docker build --no-cache --network {network} - 2>&1",
        )


def test_second_up_changes_nothing(own: Lab) -> None:
    leaders = [machine.leader_pid(own.layout, node) for node in own.machines]
    rules = traces(FIRST)["rules"]
    commands.up(FIRST)
    assert [machine.leader_pid(own.layout, node) for node in own.machines] == leaders
    assert traces(FIRST)["rules"] == rules


def test_a_missing_rule_and_shard_are_brought_back(own: Lab) -> None:
    rule = traces(FIRST)["rules"][0].split()[1:]
    output("iptables", "-t", "nat", "-D", *rule)
    own.ask(3, f"rm /{nas.LOCAL_SHARD}")
    commands.up(FIRST)
    assert len(traces(FIRST)["rules"]) == 3
    own.ask(3, f"test -f /{nas.LOCAL_SHARD}")


def test_reboot_is_a_new_boot_of_the_same_disk(own: Lab) -> None:
    own.ask(2, "echo kept > /root/file")
    before = own.ask(2, "cat /proc/sys/kernel/random/boot_id")
    control.reboot(FIRST, f"{FIRST}-2")
    assert own.ask(2, "cat /proc/sys/kernel/random/boot_id") != before
    assert own.ask(2, "cat /root/file") == "kept"


def test_reboot_asked_inside_the_node_brings_it_back(own: Lab) -> None:
    before = machine.leader_pid(own.layout, own.machines[1])
    own.ask(1, "systemctl reboot --no-block; true")
    control._wait_for_end(before or 0, f"{FIRST}-1")
    commands.up(FIRST)
    assert machine.leader_pid(own.layout, own.machines[1]) not in (None, before)


def test_killed_node_stays_off_until_up(own: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    own.ask(3, "echo kept > /root/file; sync")
    control.kill(FIRST, "3")
    assert not machine.is_on(own.layout, own.machines[3])
    assert machine.leader_pid(own.layout, own.machines[3]) is None
    with pytest.raises(UserError, match=f"{FIRST}-3 is off"):
        control.reboot(FIRST, "3")
    assert not control.status(FIRST)
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[-4:]] == [
        "up",
        "up",
        "up",
        "down",
    ]
    commands.up(FIRST)
    assert own.ask(3, "cat /root/file") == "kept"
    assert control.status(FIRST)


def test_ssh_runs_a_command_and_hands_on_its_exit_code(own: Lab) -> None:
    command = [sys.executable, "-c", "from pyinfra_vllm import cli; cli.main()", "lab"]
    words = ["--name", FIRST, "ssh", "0", "--", "sh", "-c", "echo 'a  b'; exit 7"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "a  b\n")


def test_second_lab_stands_beside_the_first_and_its_end_leaves_the_first_alone(own: Lab) -> None:
    before = traces(FIRST)
    try:
        second = Lab(bring_up(SECOND, with_images=False))
        assert not second.layout.network.overlaps(own.layout.network)
        with pytest.raises(UserError):
            second.ask(0, f"ping -c1 -W1 {FIRST}-0")
    finally:
        commands.down(SECOND)
    assert not any(traces(SECOND).values()), traces(SECOND)
    assert traces(FIRST) == before


def test_kept_disks_come_back(own: Lab) -> None:
    try:
        kept = Lab(bring_up(SECOND, with_images=False))
        kept.ask(1, "echo kept > /root/file")
        commands.down(SECOND, keep=True)
        left = traces(SECOND)
        assert left.pop("files") == [str(STATE / SECOND)]
        assert not any(left.values()), left
        again = Lab(bring_up(SECOND, with_images=False))
        assert again.ask(1, "cat /root/file") == "kept"
    finally:
        commands.down(SECOND)


def test_lab_is_removed_and_made_again_after_its_machine_lost_power(own: Lab) -> None:
    layout = bring_up(SECOND, with_images=False)
    try:
        machine.remove_all(SECOND)
        output("umount", *(str(layout.root(node)) for node in layout.machines))
        output("ip", "link", "delete", layout.bridge)
        bring_up(SECOND, with_images=False)
    finally:
        commands.down(SECOND)
    assert not any(traces(SECOND).values()), traces(SECOND)


def test_half_made_lab_is_removed(own: Lab) -> None:
    (STATE / SECOND).mkdir()
    (STATE / SECOND / "lab.json").write_text("{")
    output("ip", "link", "add", f"vl-{SECOND}", "type", "bridge")
    with pytest.raises(UserError, match="down"):
        state.load(SECOND)
    assert cli.main(["lab", "--name", SECOND, "down"]) == 0
    assert not any(traces(SECOND).values()), traces(SECOND)


def test_down_leaves_the_cache_for_the_next_lab(own: Lab) -> None:
    assert {path.name.partition("-")[0] for path in CACHE.iterdir()} >= {"root", "base", "wheels"}
