"""The state of a node before its first deploy, for plans where no node can be asked. Pure."""

from __future__ import annotations

from typing import Any

from pyinfra_vllm.node.query import Query, SnapshotQuery
from pyinfra_vllm.node.state import NodeState

REVISION = "0" * 40
"""Stands for the commit of a model that nobody pinned."""

_SPACE = {"total": 1 << 42, "free": 1 << 41, "device": 1}
_COPY = {
    "exists": True, "type": "file", "mode": "0644", "owner": "root", "group": "root",
    "device": 1, "inode": 1, "links": 1,
}  # fmt: skip
_ABSENT = {"exists": False, "type": "missing"}


def blank(query: Query) -> NodeState:
    """A node with docker, the model and the local copies asked for, and nothing of ours.

    What it can't know (GPUs, the fabric) is left unread, and no preflight is made. A model
    that isn't pinned is at ``REVISION``, so its releases have a digest of their own.
    """
    values: dict[str, Any] = {
        "system": _SYSTEM,
        "disks": dict.fromkeys(query.disks, _SPACE),
        "docker": _DOCKER,
        "images": [],
        "containers": [],
        "unit": {
            "load": "not-found",
            "active": "inactive",
            "sub": "dead",
            "enabled": "",
            "path": "",
        },
        "gang": {},
        "agent": {},
        "files": dict.fromkeys(query.files, _ABSENT),
        "snapshots": [_snapshot(item) for item in query.snapshots],
        "local_files": dict.fromkeys(query.local_files, _COPY),
        "composed": {path: {"exists": False, "device": 1} for path in query.composed},
        "listeners": [],
        "interfaces": [],
    }
    parts = {name: {"ok": True, "value": value} for name, value in values.items()}
    document = {"schema": 1, "query": query.model_dump(), "assumed": True, **parts}
    return NodeState.model_validate(document)


_UNIT = {"load": "not-found", "active": "inactive", "sub": "dead", "enabled": "", "path": ""}
_SYSTEM = {
    "hostname": "", "kernel": "unknown", "architecture": "unknown", "boot_id": "", "now": 0.0,
    "uid": 0, "python": "3.10", "memory_total": 0, "memory_available": 0,
}  # fmt: skip
_DOCKER = {
    "version": "unknown", "data_root": "/var/lib/docker", "data_root_disk": _SPACE,
    "storage_driver": "overlay2", "runtimes": ["nvidia"],
}  # fmt: skip


def _snapshot(item: SnapshotQuery) -> dict[str, Any]:
    revision = item.revision or REVISION
    folder = f"{item.hub}/models--{item.repo.replace('/', '--')}/snapshots/{revision}"
    return {
        "hub": item.hub, "hub_exists": True, "repo": item.repo, "asked": item.revision,
        "revision": revision, "path": folder, "exists": True,
        "entries": {"config.json": {"target": "../../blobs/0", "blob": "0", "size": 1}},
    }  # fmt: skip
