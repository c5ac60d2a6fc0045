"""RDMA devices and their ports, by sysfs alone, as ``ibv_devinfo`` and ``rdma`` may be missing."""

# ruff: noqa: PTH118

from __future__ import annotations

import os

from pyinfra_vllm.node.collect.files import names_in, read_text
from pyinfra_vllm.node.collect.parts import Document

CLASS = "/sys/class/infiniband"
_COUNTERS = ("port_xmit_data", "port_rcv_data")


def rdma(root: str = CLASS, devices: str = "/dev/infiniband") -> Document:
    """The ports of every RDMA device, and the device nodes that programs open."""
    return {
        "devices": names_in(devices),
        "ports": [
            port(root, name, number)
            for name in names_in(root)
            for number in names_in(os.path.join(root, name, "ports"))
        ],
    }


def port(root: str, name: str, number: str) -> Document:
    """One port. ``rate`` is in Gb/s; counters count words of four bytes and only grow."""
    folder = os.path.join(root, name, "ports", number)
    gids = gid_table(folder)
    counters = {key: read_text(os.path.join(folder, "counters", key)).strip() for key in _COUNTERS}
    return {
        "hca": name,
        "port": int(number),
        "state": _word(folder, "state"),
        "physical": _word(folder, "phys_state"),
        "rate": _rate(read_text(os.path.join(folder, "rate"))),
        "link_layer": read_text(os.path.join(folder, "link_layer")).strip(),
        "interfaces": sorted(
            {*names_in(os.path.join(root, name, "device", "net"))}
            | {gid["interface"] for gid in gids if gid["interface"]}
        ),
        "gids": gids,
        "counters": {key: int(text) for key, text in counters.items() if text.isdigit()},
    }


def gid_table(folder: str) -> list[Document]:
    """The entries in use; an unused one is all zeros and its type can't be read."""
    found = []
    for index in sorted(names_in(os.path.join(folder, "gids")), key=int):
        gid = read_text(os.path.join(folder, "gids", index)).strip()
        if not gid.strip("0:"):
            continue
        attributes = os.path.join(folder, "gid_attrs")
        found.append(
            {
                "index": int(index),
                "gid": gid,
                "type": read_text(os.path.join(attributes, "types", index)).strip(),
                "interface": read_text(os.path.join(attributes, "ndevs", index)).strip(),
            }
        )
    return found


def _word(folder: str, name: str) -> str:
    """``ACTIVE`` of ``4: ACTIVE``."""
    return read_text(os.path.join(folder, name)).strip().rpartition(": ")[2]


def _rate(text: str) -> float | None:
    """200 of ``200 Gb/sec (2X NDR)``."""
    words = text.split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return None
