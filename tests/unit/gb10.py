"""States of four GB10 nodes before their first deploy of r37.

Made by hand from a state recorded on a node of the lab and what is known of GB10: 121.7 GiB of
unified memory, one port with two logical interfaces in subnets of their own and an RDMA device
each, RoCE v2 at GID index 3. No such machine was recorded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyinfra_vllm import catalog, image, preflight
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.image import Build
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.node.collect import gpu
from pyinfra_vllm.preflight import Finding
from pyinfra_vllm.questions import Question, query_of
from unit import sysfs
from unit.gangs import REVISION, sparks

DATA = Path(__file__).parent / "data"
RECIPE = catalog.find("r37").recipe
MEMORY = int(121.7 * (1 << 30))
LINKS = (("enp1s0f0np0", "rocep1s0f0", 100), ("enP2p1s0f0np0", "roceP2p1s0f0", 101))


def build() -> Build:
    """r37's image; as if nothing of its profile were ``todo``."""
    found = image.build_of(RECIPE.docker_image_dir or "", RECIPE.build_profile, RECIPE.docker_image)
    return Build(**{**vars(found), "missing": ()})


def document(rank: int) -> dict[str, Any]:
    """The state of spark ``rank`` as its script would print it."""
    state: dict[str, Any] = json.loads((DATA / "node_state_fresh.json").read_text())
    parts = {name: part for name, part in state.items() if name != "query" and "ok" in str(part)}
    values: dict[str, Any] = {
        name: part["value"] for name, part in parts.items() if isinstance(part, dict)
    }
    values["system"] |= {
        "hostname": f"spark-{rank}",
        "architecture": "aarch64",
        "kernel": "6.11.0-1016-nvidia",
        "memory_total": MEMORY,
        "memory_available": MEMORY - (4 << 30),
        "cma_total": 32 << 20,
        "cma_free": 1 << 20,
    }
    values["docker"] |= {"version": "28.3.3", "runtimes": ["nvidia", "runc"], "raises_limits": True}
    values["pending"] = {"kernel": None, "driver": "580.95.05", "docker": "28.3.3", "reboot": None}
    smi = gpu.from_smi((DATA / "nvidia_smi_gb10.xml").read_text(), ["12.1"])
    smi["processes"] = [item for item in smi["processes"] if item["name"] != "ollama"]
    values["gpus"] = {
        "driver": "580.95.05",
        "hooks": ["nvidia-ctk"],
        "error": "",
        **smi,
        "cuda": "13.2",
    }
    values["interfaces"] = [
        _interface(name, f"192.168.{net}.{10 + rank}") for name, _, net in LINKS
    ]
    values["rdma"] = {
        "devices": ["rdma_cm", "uverbs0", "uverbs1"],
        "ports": [_port(hca, name, f"192.168.{net}.{10 + rank}") for name, hca, net in LINKS],
    }
    others = [f"192.168.100.{10 + other}" for other in range(4) if other != rank]
    values["peers"] = {
        address: {"source": f"192.168.100.{10 + rank}", "answer": "refused"} for address in others
    }
    values["engines"] = []
    query = asked(rank)
    values["files"] = {path: {"exists": False, "type": "missing"} for path in query["files"]}
    values["composed"] = {path: {"exists": False, "device": 1} for path in query["composed"]}
    values["snapshots"] = [_snapshot()]
    composed = RECIPE.composed_model
    local_files = composed.local_files if composed else ()
    device = values["disks"]["/tmp"]["device"]
    values["local_files"] = {local.host: _shard(device) for local in local_files}
    values["copies"] = {local.host: {"good": "has its rows"} for local in local_files}
    parts = {name: {"ok": True, "value": value} for name, value in values.items()}
    return {**state, **parts, "query": {**state["query"], **query}}


def asked(rank: int) -> dict[str, Any]:
    """What a deploy of r37 asks spark ``rank``."""
    gang = sparks(4)
    question = Question(gang.name, RECIPE, build().digest, gang.addresses)
    found: dict[str, Any] = query_of(question, gang.nodes[rank]).model_dump(mode="json")
    del found["asked"]
    return found


def states(*broken: tuple[int, str, dict[str, Any]]) -> dict[str, NodeState]:
    """All four by name; each of ``broken`` is (rank, part, keys of its value that differ)."""
    documents = [document(rank) for rank in range(4)]
    for rank, part, keys in broken:
        value = documents[rank][part]["value"]
        documents[rank][part]["value"] = {**value, **keys} if isinstance(value, dict) else keys
    return {
        f"spark-{rank}": NodeState.model_validate(found) for rank, found in enumerate(documents)
    }


def findings(
    *broken: tuple[int, str, dict[str, Any]], gang: Gang | None = None, **recipe: Any
) -> list[Finding]:
    """What the preflight finds on the four nodes with something broken."""
    changed = RECIPE.model_copy(update=recipe)
    return preflight.findings(changed, gang or sparks(4), build(), states(*broken))


def bad(found: list[Finding]) -> set[tuple[str, str, str]]:
    """(status, check, node) of everything that isn't fine."""
    return {(f.status, f.check, f.node) for f in found if f.status != "ok"}


def _interface(name: str, address: str) -> dict[str, Any]:
    return {
        "name": name, "addresses": [address], "networks": [f"{address}/24"], "mtu": 9000,
        "state": "up", "speed": 200000, "physical": True,
    }  # fmt: skip


def _port(hca: str, interface: str, address: str) -> dict[str, Any]:
    gid = {"index": 3, "gid": sysfs.mapped(address), "type": "RoCE v2", "interface": interface}
    return {
        "hca": hca, "port": 1, "state": "ACTIVE", "physical": "LinkUp", "rate": 200.0,
        "link_layer": "Ethernet", "interfaces": [interface], "gids": [gid],
        "counters": {"port_xmit_data": 1, "port_rcv_data": 1},
    }  # fmt: skip


def _snapshot() -> dict[str, Any]:
    hub = "/mnt/nas/huggingface/hub"
    folder = f"{hub}/models--{RECIPE.model.replace('/', '--')}/snapshots/{REVISION}"
    names = ["config.json"] + [f"model-{n:05}-of-00048.safetensors" for n in range(1, 49)]
    return {
        "hub": hub, "hub_exists": True, "repo": RECIPE.model, "asked": None,
        "revision": REVISION, "path": folder, "exists": True, "missing": [],
        "entries": {name: {"target": f"../../blobs/{n:064}", "blob": f"{n:064}", "size": 1}
                    for n, name in enumerate(names)},
    }  # fmt: skip


def _shard(device: int) -> dict[str, Any]:
    return {
        "exists": True, "type": "file", "mode": "0644", "owner": "root", "group": "root",
        "size": 101535150936, "allocated": 48 << 30, "inode": 7, "links": 1, "device": device,
    }  # fmt: skip
