"""Each check: one broken state is found, on that node, with a limit and a remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyinfra_vllm import preflight
from pyinfra_vllm.check_names import NAMES
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.node.models import SnapshotEntry
from pyinfra_vllm.preflight.table import FIRST, GANG, NODE
from unit import gb10
from unit.gangs import sparks

Broken = tuple[int, str, dict[str, Any]]
GIB = 1 << 30


def test_four_good_nodes_pass_but_for_what_is_always_said() -> None:
    expected = {("warn", "api-key", "")} | {
        ("unknown", "disk-images", f"spark-{rank}") for rank in range(4)
    }
    assert gb10.bad(gb10.findings()) == expected


def test_the_table_has_every_name_once() -> None:
    assert [check.name for check in (*FIRST, *NODE, *GANG)] == list(NAMES)
    assert all(check.source for check in (*FIRST, *NODE, *GANG))


def changed(part: str, index: int, **keys: Any) -> dict[str, Any]:
    """One element of a list in a part, changed; the part is that of spark-1."""
    several = gb10.document(1)[part]["value"]
    ports = several["ports"] if isinstance(several, dict) else several
    return {"ports": [{**p, **keys} if n == index else p for n, p in enumerate(ports)]}


SHARD = next(iter(gb10.document(1)["local_files"]["value"]))
CASES: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("fail", "architecture", "system", {"architecture": "x86_64"}, "built for aarch64"),
    ("fail", "compute-capability", "gpus",
     {"devices": [{"name": "NVIDIA H200", "capability": "9.0"}]}, "compiled for 12.1a"),
    ("fail", "driver", "gpus", {"driver": None}, "modprobe nvidia"),
    ("fail", "driver", "gpus", {"error": "nvidia-smi: Driver/library version mismatch"}, "reboot"),
    ("fail", "driver", "gpus", {"cuda": "12.8"}, "the image has CUDA 13.2"),
    ("warn", "driver", "gpus", {"cuda": "13.0"}, "within one major version"),
    ("fail", "gpu-users", "gpus",
     {"processes": [{"pid": 9, "type": "C", "name": "ollama", "memory": 20 * GIB, "user": "eve"}]},
     "pid 9 (ollama, user eve) has 20.0 GiB"),
    ("fail", "memory", "system", {"memory_available": 90 * GIB}, "108.1 GiB are needed"),
    ("warn", "swap", "system", {"swap_total": 16 * GIB}, "swapoff"),
    ("warn", "hugepages", "sysctls", {"vm.nr_hugepages": "2048"}, "sysctl -w vm.nr_hugepages=0"),
    ("fail", "cma", "system", {"cma_free": 99 << 30}, "KHO"),
    ("warn", "pending", "pending", {"kernel": "6.17.0-1-nvidia"}, "6.11.0-1016-nvidia runs"),
    ("warn", "pending", "pending", {"docker": "28.4.0"}, "docker 28.4.0 is installed"),
    ("warn", "pending", "pending", {"driver": "580.126"}, "580.95.05 is loaded"),
    ("warn", "pending", "pending", {"reboot": ["linux-base"]}, "linux-base"),
    ("fail", "io-uring", "sysctls", {"kernel.io_uring_disabled": "2"}, "sysctl --system"),
    ("fail", "rdma-devices", "rdma", {"devices": ["rdma_cm"]}, "modprobe"),
    ("warn", "memlock", "docker", {"raises_limits": False}, "memlock=-1"),
    ("fail", "hcas", "rdma", changed("rdma", 0, state="DOWN"), "ip link set dev enp1s0f0np0 up"),
    ("fail", "hcas", "rdma", changed("rdma", 1, hca="mlx5_1"), "there are: mlx5_1, rocep1s0f0"),
    ("fail", "gid", "rdma", changed("rdma", 0, gids=[]), "no RoCE v2 entry"),
    ("warn", "gid", "rdma", changed("rdma", 0, gids=[
        {"index": 5, "gid": "0000:0000:0000:0000:0000:ffff:c0a8:640b", "type": "RoCE v2"}]),
     "different GID indexes"),
    ("fail", "reach", "peers",
     {"192.168.100.12": {"source": "192.168.100.11", "answer": "No route to host"}},
     "spark-2 (192.168.100.12) can't be reached: No route to host"),
    ("warn", "reach", "peers",
     {"192.168.100.12": {"source": "10.0.0.7", "answer": "refused"}}, "reached from 10.0.0.7"),
    ("fail", "local-caches", "mounts",
     {"/var/cache/pyinfra-vllm": {"mount_point": "/var/cache", "type": "nfs4", "source": "nas:/c"}},
     "must be the node's own disk"),
    ("fail", "engram", "copies",
     {SHARD: {"refused": ["stale: it was copied from blob a; deploys/engram.py makes or tops it up",
                          "another"]}},
     f"{SHARD}: stale: it was copied from blob a; pyinfra INVENTORY deploys/engram.py --data"),
    ("fail", "hard-links", "unit", {"protect_system": "strict"}, "ProtectSystem=strict"),
    ("fail", "hard-links", "unit", {"private_tmp": True}, "PrivateTmp"),
    ("warn", "same-system", "docker", {"version": "27.0"}, "28.3.3 on spark-0, spark-2, spark-3"),
    ("warn", "same-fabric", "rdma", changed("rdma", 0, rate=100.0), "100, 200 Gb/s"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "check", "part", "keys", "words"), CASES)
def test_what_is_broken_on_one_node_is_found_there(
    status: str, check: str, part: str, keys: dict[str, Any], words: str
) -> None:
    found = gb10.findings((1, part, keys))
    (finding,) = [f for f in found if f.check == check and f.status not in ("ok", "unknown")]
    assert (finding.status, finding.node) == (status, "spark-1")
    assert words in finding.sentence


def test_a_desktop_on_the_gpu_is_no_harm() -> None:
    assert not [f for f in gb10.findings() if f.check == "gpu-users" and f.status != "ok"]


def test_a_cpu_node_is_not_asked_about_gpus() -> None:
    nodes = tuple(replace(node, gpus=False) for node in sparks(4).nodes)
    broken = {"driver": None, "devices": [], "processes": [], "hooks": []}
    found = gb10.findings((1, "gpus", broken), gang=Gang("main", nodes))
    assert not [f for f in found if f.node == "spark-1" and f.status in ("fail", "warn")]


def test_a_part_that_cannot_be_read_makes_its_checks_unknown_and_stops_nothing() -> None:
    states = gb10.states()
    sick = states["spark-2"].model_dump(by_alias=True)
    sick["rdma"] = {"ok": False, "error": "rdma: no answer in 5 s"}
    states["spark-2"] = type(states["spark-2"]).model_validate(sick)
    found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), states)
    unknown = {f.check for f in found if f.status == "unknown" and f.node == "spark-2"}
    assert {"rdma-devices", "hcas", "gid"} <= unknown
    assert not [f for f in found if f.status == "fail"]


def test_a_part_that_operations_compare_with_must_be_readable() -> None:
    states = gb10.states()
    sick = states["spark-2"].model_dump(by_alias=True)
    sick["unit"] = {"ok": False, "error": "systemd: no answer in 5 s"}
    states["spark-2"] = type(states["spark-2"]).model_validate(sick)
    (problem,) = preflight.problems(gb10.RECIPE, sparks(4), gb10.build(), states)
    assert problem == "spark-2: unit can't be read: systemd: no answer in 5 s"


def test_a_node_without_root_is_told_so_and_nothing_else() -> None:
    found = gb10.findings((3, "system", {"uid": 1000, "memory_available": 1}))
    assert [f.sentence for f in found if f.status == "fail"] == [
        "spark-3: commands run as uid 1000, root is needed; set _sudo in the inventory"
    ]


def waiving(*names: str) -> Gang:
    first, second, *others = sparks(4).nodes
    return Gang("main", (first, replace(second, waive=names), *others))


def test_a_waived_finding_stops_nothing_and_is_still_shown() -> None:
    broken: Broken = (1, "system", {"memory_available": 90 * GIB})
    assert [f.check for f in gb10.findings(broken) if f.status == "fail"] == ["memory"]
    found = gb10.findings(broken, gang=waiving("memory"))
    assert not [f for f in found if f.status == "fail"]
    (line,) = preflight.lines(found, "waived")
    assert "memory" in line and "90.0 GiB" in line and "spark-1" in line


def test_a_waiver_is_for_the_node_that_says_it() -> None:
    broken: Broken = (2, "system", {"memory_available": 90 * GIB})
    found = gb10.findings(broken, gang=waiving("memory"))
    assert [(f.check, f.node) for f in found if f.status == "fail"] == [("memory", "spark-2")]


def test_a_gang_that_serves_is_not_asked_for_free_memory() -> None:
    container = {
        "id": "c" * 64, "name": "vllm-main", "image": "x", "ours": True, "state": "running",
        "exit_code": 0, "pid": 7,
    }  # fmt: skip
    states = gb10.states((1, "system", {"memory_available": 3 * GIB}))
    serving = states["spark-1"].model_dump(by_alias=True)
    serving["containers"] = {"ok": True, "value": [container]}
    states["spark-1"] = type(states["spark-1"]).model_validate(serving)
    found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), states)
    assert not [f for f in found if f.status == "fail"]


def test_a_key_or_a_narrow_address_quiets_the_warning_about_the_api() -> None:
    for change in (
        {"secrets": ("VLLM_API_KEY",)},
        {"args": (*gb10.RECIPE.args, "--host", "10.0.0.1")},
    ):
        found = gb10.findings(**change)
        assert not [f for f in found if f.check == "api-key" and f.status != "ok"]


def test_a_clock_that_is_off_is_measured_and_the_time_of_asking_is_no_offset() -> None:
    def clock(now: float) -> list[str]:
        states = gb10.states()
        late = states["spark-1"].model_dump(by_alias=True)
        late["system"]["value"]["now"] = now
        late["query"]["asked"], late["received"] = 1000.0, 1004.0
        states["spark-1"] = type(states["spark-1"]).model_validate(late)
        return preflight.problems(gb10.RECIPE, sparks(4), gb10.build(), states)

    assert clock(1003.9) == clock(998.5) == []
    assert "the clock is -10.0 s off" in clock(990.0)[0]
    assert "the clock is +3.0 s off" in clock(1007.0)[0]


def test_equal_findings_of_several_nodes_are_one_line() -> None:
    broken: list[Broken] = [(rank, "system", {"swap_total": GIB}) for rank in range(4)]
    (line,) = [text for text in preflight.lines(gb10.findings(*broken), "warn") if "swap" in text]
    assert "spark-0, spark-1, spark-2, spark-3: 1.0 GiB of swap are on" in line


def test_nodes_that_do_not_answer_are_left_out() -> None:
    states = gb10.states()
    del states["spark-3"]
    found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), states)
    assert not [f for f in found if f.status == "fail" or f.node == "spark-3"]


def test_a_dockerd_that_is_silent_on_one_node_leaves_the_other_nodes_checks_alone() -> None:
    states = gb10.states()
    sick = states["spark-2"].model_dump(by_alias=True)
    sick["images"] = {"ok": False, "error": "dockerd: no answer in 10 s"}
    states["spark-2"] = type(states["spark-2"]).model_validate(sick)
    found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), states)
    assert [f.sentence for f in found if f.status == "fail"] == [
        "spark-2: images can't be read: dockerd: no answer in 10 s"
    ]


def test_file_of_the_cache_that_links_out_of_it_is_named_and_said_how_to_mend() -> None:
    states = gb10.states()
    (known,) = states["spark-1"].snapshots.required
    for target, outside in (
        ("/data/x", True),
        ("../../../../../x", True),
        ("../../blobs/1", False),
    ):
        entries = {**known.entries, "x.json": SnapshotEntry(target=target, size=1)}
        snapshot = known.model_copy(update={"entries": entries})
        part = states["spark-1"].snapshots.model_copy(update={"value": (snapshot,)})
        broken = {**states, "spark-1": states["spark-1"].model_copy(update={"snapshots": part})}
        found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), broken)
        sentences = [f.sentence for f in found if f.check == "model" and f.status == "fail"]
        assert bool(sentences) == outside
        assert not outside or f"x.json links to {target}, out of {known.hub}" in sentences[0]


def test_copy_that_nobody_judged_is_unknown_and_a_missing_one_is_said_once() -> None:
    states = gb10.states((2, "local_files", {SHARD: {"exists": False, "type": "missing"}}))
    judged = states["spark-1"].copies.required
    value = {path: copy for path, copy in judged.items() if path != SHARD}
    part = states["spark-1"].copies.model_copy(update={"value": value})
    states["spark-1"] = states["spark-1"].model_copy(update={"copies": part})
    found = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), states)
    told = [(f.node, f.check, f.status) for f in found if SHARD in f.measured and f.status != "ok"]
    assert told == [("spark-1", "engram", "unknown"), ("spark-2", "local-files", "fail")]


def test_model_of_which_only_small_files_are_there_is_refused() -> None:
    states = gb10.states()
    (known,) = states["spark-1"].snapshots.required
    entries = {"config.json": SnapshotEntry(target="../../blobs/1", size=1)}
    plain = gb10.RECIPE.model_copy(update={"composed_model": None})
    for changes, expected in (
        ({"entries": entries}, ("fail", "has no weights")),
        ({"unfinished": ("1.incomplete",)}, ("warn", "1 downloads")),
    ):
        snapshot = known.model_copy(update=changes)
        part = states["spark-1"].snapshots.model_copy(update={"value": (snapshot,)})
        broken = {**states, "spark-1": states["spark-1"].model_copy(update={"snapshots": part})}
        found = preflight.findings(plain, sparks(4), gb10.build(), broken)
        (finding,) = [f for f in found if f.check == "model" and f.status != "ok"]
        assert (finding.status, finding.node) == (expected[0], "spark-1")
        assert expected[1] in finding.sentence
