"""Whether a gang speaks over RDMA: NCCL falls back to sockets silently, and is slow then. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyinfra_vllm.node.models import Rdma
from pyinfra_vllm.node.state import NodeState

_WORD = 4
_NEEDED = 1 << 20
"""Bytes that the devices of a rank carry at least for a first completion: weights' sums do more."""

_OVER_RDMA = re.compile(r"NET/IB\b.*\bUsing\b|Using network IB|via NET/IB")
_OVER_SOCKETS = re.compile(r"Using network Socket|via NET/Socket")


@dataclass(frozen=True)
class Before:
    """The RDMA ports of a node before a start, and its clock then (Unix seconds)."""

    rdma: Rdma
    at: float


def before(states: Mapping[str, NodeState]) -> dict[str, Before]:
    """Of every node whose ports could be read."""
    return {
        name: Before(state.rdma.required, state.system.required.now)
        for name, state in states.items()
        if state.rdma.ok
    }


def verdict(hcas: Iterable[str], earlier: Rdma, now: Rdma, log: Iterable[str]) -> str | None:
    """None when a rank speaks over RDMA, else why not.

    ``earlier`` and ``now`` are its RDMA ports before the start and after the first
    completion; ``log`` is the engine's since its start (NCCL names its network there only
    with NCCL_DEBUG=INFO).
    """
    lines = list(log)
    if any(_OVER_RDMA.search(line) for line in lines):
        return None
    hcas = list(hcas)
    moved = carried(hcas, now) - carried(hcas, earlier)
    sockets = next((line.strip() for line in lines if _OVER_SOCKETS.search(line)), None)
    if sockets is None and moved >= _NEEDED:
        return None
    said = f'; its log says "{sockets[:160]}"' if sockets else ""
    return f"NCCL fell back to sockets: {', '.join(hcas)} carried {moved >> 10} KiB{said}"


def carried(hcas: Iterable[str], rdma: Rdma) -> int:
    """Bytes that the devices have sent and received since they came up."""
    ports = [port for hca in hcas for port in rdma.ports_of(hca)]
    return sum(_WORD * words for port in ports for words in port.counters.values())
