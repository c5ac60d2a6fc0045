"""Read the state of this node and print it as one line of JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from pyinfra_vllm.node.collect import (
    cache,
    copies,
    docker,
    files,
    gang,
    gpu,
    kernel,
    leftovers,
    listeners,
    metrics,
    mounts,
    network,
    past,
    peers,
    rdma,
    secret_file,
    system,
)
from pyinfra_vllm.node.collect.parts import Document, run_parts

SCHEMA = 1


def part_functions(query: Document) -> dict[str, Callable[[], object]]:
    """The parts of the document and how each is read; the order is the order of the document."""
    root, name = query["state_root"], query["gang"]
    return {
        "system": system.system,
        "disks": partial(system.disks, query["disks"]),
        "docker": docker.docker,
        "images": partial(docker.images, query["label_build"], query["image_tags"]),
        "containers": partial(
            docker.containers, query["label_gang"], query["api_port"], query.get("environ", ())
        ),
        "unit": partial(gang.unit, query["unit"]),
        "gang": partial(gang.releases, root, name, query["releases"]),
        "agent": partial(gang.agent, query["agent_path"], query["status_path"]),
        "secrets": partial(secret_file.secrets, root, name, query["status_path"]),
        "files": partial(files.files, query["files"]),
        "snapshots": partial(cache.snapshots, query["snapshots"]),
        "local_files": partial(files.local_files, query["local_files"]),
        "copies": partial(copies.copies, query["copies"]),
        "composed": partial(files.composed, query["composed"]),
        "listeners": partial(listeners.listeners, query["ports"]),
        "interfaces": network.interfaces,
        "rdma": rdma.rdma,
        "gpus": gpu.gpus,
        "mounts": partial(mounts.mounts, query["mounts"]),
        "sysctls": kernel.sysctls,
        "clock": kernel.clock,
        "pending": kernel.pending,
        "peers": partial(peers.peers, query["peers"], query["peer_port"]),
        "engines": leftovers.engines,
        "ageing": leftovers.ageing,
        "leftovers": partial(leftovers.leftovers, root, query["unit_root"], query["composed_root"]),
        "past": partial(past.past, root, name),
        "metrics": partial(metrics.metrics, root, name, query.get("metrics")),
    }


def subjects(query: Document) -> dict[str, str]:
    """Who is to blame when a part is late."""
    hubs = sorted({item["hub"] for item in query["snapshots"]})
    return {
        **dict.fromkeys(("docker", "images", "containers"), "dockerd"),
        "unit": "systemd",
        "gpus": "nvidia-smi",
        "metrics": "the engine",
        "snapshots": f"the file system of {', '.join(hubs)}",
        "local_files": f"the file system of {', '.join(query['local_files'])}",
        "copies": f"the file system of {', '.join([*hubs, *query['local_files']])}",
    }


def collect(query: Document) -> Document:
    """The whole document; a part that can't be read says so and doesn't hold up the others."""
    # A session without login shell may lack the folders of systemctl and ip.
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    parts = run_parts(part_functions(query), query["deadline"], subjects(query))
    return {"schema": SCHEMA, "query": query, **parts}


def main(query: dict[str, Any]) -> None:
    """Print the document. SIGTERM and SIGHUP end it and its children."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    sys.stdout.write(json.dumps(collect(query), separators=(",", ":")) + "\n")
    sys.stdout.flush()
