"""Node states as a table that a person reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pyinfra_vllm.node.state import NodeState

HEADINGS = ("node", "system", "memory free", "docker", "GPU", "fabric", "release", "phase")
_GIB = 1 << 30


def table(states: Mapping[str, NodeState], silent: Mapping[str, str]) -> list[str]:
    """One line a node, then what could not be read. ``silent``: node -> why it didn't answer."""
    rows = [HEADINGS, *(row(name, state) for name, state in states.items())]
    rows += [(name, "no answer", *("-" * len(HEADINGS[2:]))) for name in silent]
    return [*columns(rows), *_unread(states, silent)]


def row(name: str, state: NodeState) -> tuple[str, ...]:
    """What matters most of a node, in the order of ``HEADINGS``."""
    docker, status = state.docker.value_or(None), state.agent.value_or(None)
    phase = status.status.phase if status and status.status else "-"
    return (
        name, _system(state), _memory(state), docker.version if docker else "?", _gpu(state),
        _fabric(state), _release(state), phase,
    )  # fmt: skip


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, every column as wide as its widest text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _unread(states: Mapping[str, NodeState], silent: Mapping[str, str]) -> Iterator[str]:
    for name, state in states.items():
        for part, why in state.failures().items():
            yield f"{name}: {part} can't be read: {why}"
    for name, why in silent.items():
        yield f"{name}: {why}"


def _system(state: NodeState) -> str:
    system = state.system.value_or(None)
    if system is None:
        return "?"
    return f"{system.distribution.partition(' (')[0]}, {system.kernel} {system.architecture}"


def _memory(state: NodeState) -> str:
    system = state.system.value_or(None)
    if system is None:
        return "?"
    return f"{system.memory_available / _GIB:.1f} of {system.memory_total / _GIB:.1f} GiB"


def _gpu(state: NodeState) -> str:
    gpus = state.gpus.value_or(None)
    if gpus is None:
        return "?"
    names = ", ".join(device.name.removeprefix("NVIDIA ") for device in gpus.devices)
    return f"{names} ({gpus.driver})" if names else gpus.error or "none"


def _fabric(state: NodeState) -> str:
    """Links that are up, with address, speed and RDMA device."""
    rdma = state.rdma.value_or(None)
    hcas = {name: port.hca for port in (rdma.ports if rdma else ()) for name in port.interfaces}
    shown = []
    for link in state.interfaces.value_or(()):
        if link.state == "up" and link.addresses and not link.name.startswith(("docker", "br-")):
            speed = f" {link.speed // 1000} Gb/s" if link.speed else ""
            hca = f" {hcas[link.name]}" if link.name in hcas else ""
            shown.append(f"{link.addresses[0]} {link.name}{speed}{hca}")
    return ", ".join(shown) or "none"


def _release(state: NodeState) -> str:
    folder = state.gang.value_or(None)
    digest = folder.current_release if folder else None
    if folder is None or digest is None:
        return "none"
    release = folder.releases.get(digest)
    about = release.files.get("release.json") if release else None
    try:
        recipe = json.loads((about and about.text) or "{}").get("recipe", "")
    except ValueError:
        recipe = ""
    return f"{digest[:12]} {recipe}".strip()
