"""The fabric of a gang where the inventory leaves it out: found on the nodes, kept, shown. Pure.

Taken are the subnets that all nodes share, each under an address of its own, on links that
are up: those of RDMA ports, and where there are none the fastest one. What was found before
is kept while the node still has it: a link that is down is a finding of the preflight, and
not another fabric.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyinfra_vllm.cluster import Gang, Node, plain_name
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.state import NodeState

States = Mapping[str, NodeState]

_VALUES: Mapping[str, Callable[[Node], Any]] = {
    "vllm_fabric_address": lambda node: node.fabric_address,
    "vllm_interfaces": lambda node: list(node.interfaces),
    "vllm_hcas": lambda node: list(node.hcas),
}
_BRIDGES = ("docker", "br-", "veth", "virbr", "cni", "flannel", "tailscale", "wg", "tun", "lo")


@dataclass(frozen=True)
class _Link:
    """An IPv4 address of a node; ``hca`` is empty without RDMA, ``speed`` in Mb/s."""

    interface: str
    address: str
    subnet: str
    hca: str
    speed: int


def derived(gang: Gang, states: States) -> Gang:
    """The gang with what the inventory leaves out filled in from the nodes' states.

    UserError when the nodes share no subnet, or when a node doesn't answer and no release
    says its address.
    """
    if not any(node.derived for node in gang.nodes):
        return gang
    links = {name: list(_links(state)) for name, state in states.items()}
    subnets = _subnets(gang, links)
    known = recorded(gang, states)
    nodes = [
        _filled(node, states.get(node.name), links.get(node.name, []), subnets,
                known.get(plain_name(node.name), {}))
        for node in gang.nodes
    ]  # fmt: skip
    if any(not node.fabric_address for node in nodes):
        raise UserError("\n".join(_unknown(nodes, links)))
    return replace(gang, nodes=tuple(nodes))


def notes(gang: Gang) -> list[str]:
    """A line for each node with what was derived for it."""
    return [
        f"{name}: found on the node, as the inventory leaves it out: "
        + ", ".join(f"{key} = {value!r}" for key, value in values.items())
        for name, values in record(gang).items()
    ]


def record(gang: Gang) -> dict[str, dict[str, Any]]:
    """Node -> derived keys and their values, as release.json keeps them."""
    return {
        node.name: {key: _VALUES[key](node) for key in node.derived}
        for node in gang.nodes
        if node.derived
    }


def recorded(gang: Gang, states: States) -> dict[str, dict[str, Any]]:
    """What the gang's current release says was derived, by node; empty when none says so."""
    for node in gang.nodes:
        state = states.get(node.name)
        folder = state.gang.value_or(None) if state else None
        release = folder.releases.get(folder.current_release or "") if folder else None
        about = release.files.get("release.json") if release else None
        try:
            values = json.loads((about and about.text) or "{}").get("derived")
        except ValueError:
            continue
        if values:
            return dict(values)
    return {}


def _links(state: NodeState) -> Iterator[_Link]:
    ports = state.rdma.required.ports
    hcas = {name: port.hca for port in ports if port.is_active for name in port.interfaces}
    for link in state.interfaces.required:
        if link.state == "down" or link.name.startswith(_BRIDGES):
            continue
        for network in map(ipaddress.ip_interface, link.networks):
            if network.version == 4:
                yield _Link(
                    link.name, str(network.ip), str(network.network), hcas.get(link.name, ""),
                    link.speed or 0,
                )  # fmt: skip


def _subnets(gang: Gang, links: Mapping[str, list[_Link]]) -> list[str]:
    """Subnets of the fabric, the best first: the one of an address that the inventory says."""
    said = {node.fabric_address for node in gang.nodes}
    found: dict[str, list[_Link]] = {}
    for several in links.values():
        for link in several:
            found.setdefault(link.subnet, []).append(link)
    shared = [
        several
        for several in found.values()
        if len({link.address for link in several}) == len(several) == len(links)
    ]
    best = sorted(shared, key=lambda several: _merit(several, said), reverse=True)
    with_rdma = [several for several in best if all(link.hca for link in several)]
    return [several[0].subnet for several in with_rdma or best[:1]]


def _merit(several: list[_Link], said: set[str]) -> tuple[bool, bool, int]:
    return (
        any(link.address in said for link in several),
        all(link.hca for link in several),
        min(link.speed for link in several),
    )


def _filled(
    node: Node,
    state: NodeState | None,
    links: list[_Link],
    subnets: list[str],
    known: Mapping[str, Any],
) -> Node:
    by_subnet = {link.subnet: link for link in links}
    chosen = [by_subnet[subnet] for subnet in subnets if subnet in by_subnet]
    found: dict[str, Any] = {
        "vllm_fabric_address": chosen[0].address if chosen else "",
        "vllm_interfaces": [link.interface for link in chosen],
        "vllm_hcas": [link.hca for link in chosen if link.hca],
    }
    for key in node.derived:
        if key in known and (state is None or _is_there(key, known[key], state)):
            found[key] = known[key]
    values = {key: found[key] for key in node.derived}
    return replace(
        node,
        fabric_address=values.get("vllm_fabric_address", node.fabric_address),
        interfaces=tuple(values.get("vllm_interfaces", node.interfaces)),
        hcas=tuple(values.get("vllm_hcas", node.hcas)),
    )


def _is_there(key: str, value: Any, state: NodeState) -> bool:
    """Whether the node still has what was derived before, up or down."""
    if key == "vllm_fabric_address":
        return state.has_address(value)
    if key == "vllm_interfaces":
        return set(value) <= {link.name for link in state.interfaces.required}
    return set(value) <= {port.hca for port in state.rdma.required.ports}


def _unknown(nodes: list[Node], links: Mapping[str, list[_Link]]) -> Iterator[str]:
    for node in nodes:
        if not node.fabric_address:
            has = ", ".join(link.address for link in links.get(node.name, []))
            why = f"it has {has}, in no subnet that all nodes share" if has else "it doesn't answer"
            yield (
                f"{node.name}: vllm_fabric_address: missing in the inventory, and can't be "
                f'derived: {why}; add "vllm_fabric_address": "192.168.100.11"'
            )
