"""Power, ends and neighbours of a lab, tried on labs of these tests' own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyinfra_vllm import cli
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import commands, control, machine, nas, state
from pyinfra_vllm.lab.layout import CACHE, STATE

from .conftest import Lab, bring_up
from .traces import output, traces

pytestmark = pytest.mark.lab

SECOND = "tests2"


def test_second_up_changes_nothing(own: Lab) -> None:
    leaders = [machine.leader_pid(own.layout, node) for node in own.machines]
    rules = traces(own.name)["rules"]
    commands.up(own.name)
    assert [machine.leader_pid(own.layout, node) for node in own.machines] == leaders
    assert traces(own.name)["rules"] == rules


def test_a_missing_rule_and_shard_are_brought_back(own: Lab) -> None:
    rule = traces(own.name)["rules"][0].split()[1:]
    output("iptables", "-t", "nat", "-D", *rule)
    own.ask(3, f"rm /{nas.LOCAL_SHARD}")
    commands.up(own.name)
    assert len(traces(own.name)["rules"]) == 3
    own.ask(3, f"test -f /{nas.LOCAL_SHARD}")


def test_reboot_is_a_new_boot_of_the_same_disk(own: Lab) -> None:
    own.ask(2, "echo kept > /root/file")
    before = own.ask(2, "cat /proc/sys/kernel/random/boot_id")
    control.reboot(own.name, f"{own.name}-2")
    assert own.ask(2, "cat /proc/sys/kernel/random/boot_id") != before
    assert own.ask(2, "cat /root/file") == "kept"


def test_reboot_asked_inside_the_node_brings_it_back(own: Lab) -> None:
    before = machine.leader_pid(own.layout, own.machines[1])
    own.ask(1, "systemctl reboot --no-block; true")
    control._wait_for_end(before or 0, f"{own.name}-1")
    commands.up(own.name)
    assert machine.leader_pid(own.layout, own.machines[1]) not in (None, before)


def test_killed_node_stays_off_until_up(own: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    own.ask(3, "echo kept > /root/file; sync")
    control.kill(own.name, "3")
    assert not machine.is_on(own.layout, own.machines[3])
    assert machine.leader_pid(own.layout, own.machines[3]) is None
    with pytest.raises(UserError, match=f"{own.name}-3 is off"):
        control.reboot(own.name, "3")
    assert not control.status(own.name)
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[-4:]] == [
        "up",
        "up",
        "up",
        "down",
    ]
    commands.up(own.name)
    assert own.ask(3, "cat /root/file") == "kept"
    assert control.status(own.name)


def test_the_link_of_a_boot_before_is_in_nobodys_way(own: Lab) -> None:
    name = own.machines[3].name
    control.kill(own.name, "3")
    subprocess.run(["ip", "link", "add", f"vb-{name}", "type", "dummy"], check=False)
    commands.up(own.name, with_images=False)
    assert own.ask(3, "hostname") == name


def test_ssh_runs_a_command_and_hands_on_its_exit_code(own: Lab) -> None:
    command = [sys.executable, "-c", "from pyinfra_vllm import cli; cli.main()", "lab"]
    words = ["--name", own.name, "ssh", "0", "--", "sh", "-c", "echo 'a  b'; exit 7"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "a  b\n")


def test_second_lab_stands_beside_the_first_and_its_end_leaves_the_first_alone(own: Lab) -> None:
    before = traces(own.name)
    try:
        second = Lab(bring_up(SECOND, with_images=False))
        assert not second.layout.network.overlaps(own.layout.network)
        with pytest.raises(UserError):
            second.ask(0, f"ping -c1 -W1 {own.name}-0")
    finally:
        commands.down(SECOND)
    assert not any(traces(SECOND).values()), traces(SECOND)
    assert traces(own.name) == before


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
