"""The main command on four nodes, with the real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheel_venv import installed_wheel, run

from .commands import complete, pyinfra
from .conftest import Lab

pytestmark = pytest.mark.lab

RECIPE = ("--data", "recipe=tiny-cpu-4x")
STATE = "/var/lib/pyinfra-vllm/main"
HARD = "model-00002-of-00002.safetensors"
LOCAL = f"/var/tmp/engram-local/llama-tp4/{HARD}"
RANKS = range(4)


@pytest.fixture(scope="module")
def served(lab: Lab) -> Iterator[Lab]:
    """The lab, serving tiny-cpu-4x as the README's first command leaves it."""
    done = pyinfra("-y", *RECIPE, lab=lab.name)
    assert done.code == 0, done.text[-6000:]
    yield lab


def running(lab: Lab) -> list[str]:
    """What must not change where nothing is restarted: containers and main processes."""
    ask = "docker inspect -f '{{.Id}} {{.State.StartedAt}}' vllm-main; "
    ask += "systemctl show -P MainPID vllm-main"
    return [lab.ask(rank, ask) for rank in RANKS]


def release(lab: Lab) -> str:
    return lab.ask(0, f"readlink -f {STATE}/current")


def test_the_head_answers_and_answers_the_same_again(served: Lab) -> None:
    address = served.machines[0].address
    text = complete(address)
    assert len(text) == 16
    assert complete(address) == text


def test_the_second_run_changes_nothing_and_restarts_nothing(served: Lab) -> None:
    before = running(served)
    again = pyinfra("-y", *RECIPE, lab=served.name)
    assert again.code == 0, again.text
    assert again.changes() == {}
    assert running(served) == before


def test_a_dry_run_plans_nothing_and_lists_the_stages_apart(served: Lab) -> None:
    planned = pyinfra("--dry", *RECIPE, lab=served.name).planned()
    assert not any(planned.values())
    stages = " ".join(planned)
    for stage in ("Image", "Release", "Composed model", "Unit", "Gang: ready"):
        assert stage in stages


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        (f"{STATE}/current/command.txt", "Serve | Release: files"),
        ("/etc/systemd/system/vllm-main.service", "Serve | Unit: installed and enabled"),
    ],
)
def test_a_hand_edit_is_shown_for_its_node_alone_and_repaired(
    served: Lab, path: str, operation: str
) -> None:
    before = running(served)
    served.ask(2, f"echo '# by hand' >> $(readlink -f {path})")
    plan = pyinfra("--dry", "--diff", *RECIPE, lab=served.name)
    assert {name: nodes for name, nodes in plan.planned().items() if nodes} == {
        operation: {served.machines[2].name}
    }
    assert "- # by hand" in plan.text
    repaired = pyinfra("-y", *RECIPE, lab=served.name)
    assert repaired.changes() == {operation: 1}
    assert "by hand" not in served.ask(2, f"cat {path}")
    assert running(served) == before


def test_links_changed_by_hand_are_repaired_without_a_restart(served: Lab) -> None:
    before = running(served)
    composed = f"/tmp/composed-models/main/{release(served).rpartition('/')[2]}"
    served.ask(1, f"rm {composed}/config.json && ln -s /etc/hostname {composed}/config.json")
    repaired = pyinfra("-y", *RECIPE, lab=served.name)
    assert repaired.changes() == {"Serve | Composed model: links": 1}
    assert running(served) == before


def test_every_node_has_the_image_with_the_same_content(served: Lab) -> None:
    ask = "docker image inspect -f '{{json .RootFS.Layers}} {{json .Config.Labels}}' vllm-cpu:lab"
    said = {served.ask(rank, ask) for rank in RANKS}
    assert len(said) == 1
    assert "pyinfra-vllm.build" in said.pop()


def test_the_unit_runs_and_is_enabled_on_every_node(served: Lab) -> None:
    for rank in RANKS:
        unit = served.host(rank).service("vllm-main")
        assert unit.is_running
        assert unit.is_enabled


def test_containers_carry_release_and_rank(served: Lab) -> None:
    digest = release(served).rpartition("/")[2]
    for rank in RANKS:
        labels = json.loads(
            served.ask(rank, "docker inspect -f '{{json .Config.Labels}}' vllm-main")
        )
        assert labels["pyinfra-vllm.release"] == digest
        assert labels["pyinfra-vllm.rank"] == str(rank)
        assert labels["pyinfra-vllm.recipe"] == "tiny-cpu-4x"


def test_the_model_is_links_into_the_cache_and_one_shard_of_the_node(served: Lab) -> None:
    composed = f"/tmp/composed-models/main/{release(served).rpartition('/')[2]}"
    for rank in RANKS:
        host = served.host(rank)
        config = host.file(f"{composed}/config.json")
        assert config.is_symlink
        assert config.linked_to.startswith("/mnt/nas/hub/models--tiny-random--llama-tp4/")
        assert served.ask(rank, f"test {composed}/{HARD} -ef {LOCAL} && echo same") == "same"
        pid = served.ask(rank, "docker inspect -f '{{.State.Pid}}' vllm-main")
        seen = served.ask(rank, f"ls -i /proc/{pid}/root/model/{HARD}").split()[0]
        assert seen == served.ask(rank, f"ls -i {LOCAL}").split()[0]
        for mount in ("/model", "/mnt/nas/hub"):
            ask = f'docker inspect -f \'{{{{range .Mounts}}}}{{{{if eq .Destination "{mount}"}}}}'
            assert served.ask(rank, ask + "{{.RW}}{{end}}{{end}}' vllm-main") == "false"


def test_files_belong_to_root_with_the_modes_that_are_said(served: Lab) -> None:
    for rank in RANKS:
        host = served.host(rank)
        folder = release(served)
        assert (host.file(folder).mode, host.file(folder).user) == (0o755, "root")
        for name in host.file(folder).listdir():
            assert (host.file(f"{folder}/{name}").mode, name) == (0o644, name)
        agent = host.file("/usr/local/lib/pyinfra-vllm/agent.pyz")
        assert (agent.mode, agent.user) == (0o755, "root")


def test_the_log_of_the_engine_is_in_the_journal_of_every_node(served: Lab) -> None:
    for rank in RANKS:
        assert "INFO" in served.ask(rank, "journalctl -u vllm-main -o cat --no-pager | tail -n 200")


def test_nothing_is_left_of_the_image_on_its_way(served: Lab) -> None:
    for rank in RANKS:
        assert served.ask(rank, "ls -A /var/lib/pyinfra-vllm/share 2>/dev/null || true") == ""
        assert "29502" not in served.ask(rank, "ss -Hltn || true")


THEIR_INVENTORY = """
llm = [
    (name, {{"ssh_hostname": address, "vllm_rank": rank, "vllm_fabric_address": address}})
    for rank, (name, address) in enumerate({nodes!r})
]
"""

THEIR_GROUP_DATA = """
ssh_user = "root"
ssh_key = {key!r}
ssh_known_hosts_file = {known_hosts!r}
ssh_config_file = "/dev/null"
vllm_interfaces = ["host0"]
vllm_hcas = []
vllm_gpus = False
vllm_hf_cache = "/mnt/nas/hub"
"""


def test_another_repository_with_the_wheel_finds_nothing_to_change(
    served: Lab, tmp_path: Path
) -> None:
    layout = served.layout
    nodes = [(node.name, node.address) for node in served.machines]
    (tmp_path / "group_data").mkdir()
    (tmp_path / "inventory.py").write_text(THEIR_INVENTORY.format(nodes=nodes))
    (tmp_path / "group_data" / "llm.py").write_text(
        THEIR_GROUP_DATA.format(key=str(layout.key), known_hosts=str(layout.known_hosts))
    )
    (tmp_path / "deploy.py").write_text(
        'from pyinfra_vllm.deploys import serve\n\nserve("tiny-cpu-4x", _sudo=True)\n'
    )
    pyinfra_of_theirs = installed_wheel(tmp_path) / "pyinfra"
    done = run(pyinfra_of_theirs, "--dry", "--json", "inventory.py", "deploy.py", cwd=tmp_path)
    plan = json.loads(done.stdout)["plan"]
    assert len(plan) > 5
    assert [item["name"] for item in plan if item["hosts_with_change"]] == []
