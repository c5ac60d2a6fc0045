"""From the inventory to a gang: which nodes serve together, in which order, over which fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyinfra_vllm import inventory_words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.suggest import did_you_mean

PREFIX = "vllm_"
MAIN = "main"

KEYS: Mapping[str, Callable[[object], object]] = {
    "vllm_rank": inventory_words.rank,
    "vllm_gang": inventory_words.gang,
    "vllm_fabric_address": inventory_words.address,
    "vllm_interfaces": inventory_words.interfaces,
    "vllm_hcas": inventory_words.hcas,
    "vllm_hf_cache": inventory_words.hf_cache,
    "vllm_gpus": inventory_words.gpus,
    "vllm_alert": inventory_words.alert,
    "vllm_secrets": inventory_words.secrets,
    "vllm_waive": inventory_words.waive,
    "vllm_image_source": inventory_words.image_source,
}
"""Every key of host data that is ours, and what reads it."""

FABRIC_KEYS = ("vllm_fabric_address", "vllm_interfaces", "vllm_hcas")
"""Keys that may be left out: the fabric is then found on the nodes."""

_EXAMPLES = {
    "vllm_rank": '"vllm_rank": 1',
    "vllm_fabric_address": '"vllm_fabric_address": "192.168.100.11"',
    "vllm_hf_cache": '"vllm_hf_cache": "/mnt/nas/hub"',
}


@dataclass(frozen=True)
class Node:
    """One inventory host as a member of a gang."""

    name: str
    rank: int
    fabric_address: str
    """Empty if the inventory gives none: a gang of one needs none, else it is derived."""
    interfaces: tuple[str, ...]
    hcas: tuple[str, ...]
    hf_cache: str
    """The folder that holds ``models--ORG--NAME``, without a slash at the end."""
    gpus: bool
    waive: tuple[str, ...] = ()
    """Names of preflight checks whose findings don't stop a deploy."""
    derived: tuple[str, ...] = ()
    """Keys that the inventory leaves out and the node's state answers."""
    alert: str = ""
    """Shell command that tells a person, run by the agent; empty for none."""


@dataclass(frozen=True)
class Gang:
    """The nodes that run one recipe together, in the order of their ranks."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def head(self) -> Node:
        """Rank 0."""
        return self.nodes[0]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Fabric addresses in rank order, empty where they aren't known yet."""
        return tuple(node.fabric_address for node in self.nodes)

    def node(self, name: str) -> Node:
        """The member that the inventory calls ``name``. KeyError if it is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


@dataclass(frozen=True)
class _Host:
    """A host of the gang with the values that could be read, and what was wrong with others."""

    name: str
    values: Mapping[str, object]
    wrong: Mapping[str, str]

    def may_belong_to(self, gang: str) -> bool:
        return "vllm_gang" in self.wrong or self.values.get("vllm_gang", MAIN) == gang

    @property
    def rank(self) -> int | None:
        return cast("int | None", self.values.get("vllm_rank"))


def plain_name(name: str) -> str:
    """A host's name without its connector: ``@fake/spark-0`` plans what spark-0 would get."""
    return name.partition("/")[2] or name if name.startswith("@") else name


def gang_of(hosts: Mapping[str, Mapping[str, Any]], required_nodes: int, name: str = MAIN) -> Gang:
    """The gang ``name`` that ranks 0 to ``required_nodes`` - 1 of ``hosts`` make.

    ``hosts`` is the data of *every* host of the inventory, by host name; what doesn't begin
    with ``vllm_`` is someone else's. Nodes of other gangs and of higher ranks are left out.
    UserError has one line for everything that is wrong.
    """
    read = [_read(host, data) for host, data in hosts.items()]
    ours = [host for host in read if host.may_belong_to(name)]
    members = [host for host in ours if host.rank is not None and host.rank < required_nodes]
    lines = [f"{host.name}: {key}: {text}" for host in ours for key, text in host.wrong.items()]
    lines += _missing(ours, members, required_nodes)
    lines += _duplicates(ours, members)
    lines += _gaps(ours, required_nodes, name)
    if lines:
        raise UserError("\n".join(lines))
    nodes = [_node(host, required_nodes) for host in members]
    return Gang(name, tuple(sorted(nodes, key=lambda node: node.rank)))


def _read(name: str, data: Mapping[str, Any]) -> _Host:
    values: dict[str, object] = {}
    wrong: dict[str, str] = {}
    for key in data:
        if key.startswith(PREFIX) and key not in KEYS:
            wrong[key] = f"unknown key of the inventory; {did_you_mean(key, KEYS)}"
    for key, reader in KEYS.items():
        if key in data:
            try:
                values[key] = reader(data[key])
            except ValueError as error:
                wrong[key] = str(error)
    return _Host(name, values, wrong)


def _missing(ours: list[_Host], members: list[_Host], required_nodes: int) -> Iterator[str]:
    for host in ours:
        needed = ["vllm_rank"]
        if host in members:
            needed += ["vllm_hf_cache"]
        for key in needed:
            if key not in host.values and key not in host.wrong:
                yield f"{host.name}: {key}: missing in the inventory; add {_EXAMPLES[key]}"


def _duplicates(ours: list[_Host], members: list[_Host]) -> Iterator[str]:
    for key, hosts in (("vllm_rank", ours), ("vllm_fabric_address", members)):
        first: dict[object, str] = {}
        for host in hosts:
            value = host.values.get(key)
            if value is not None and first.setdefault(value, host.name) != host.name:
                yield f"{host.name}: {key}: {value} is already that of {first[value]}"


def _gaps(ours: list[_Host], required_nodes: int, name: str) -> Iterator[str]:
    if len(ours) < required_nodes:
        there = ", ".join(host.name for host in ours) or "none"
        yield (
            f"gang {name}: the recipe needs {required_nodes} nodes, "
            f"the inventory has {len(ours)}: {there}"
        )
        return
    if any(host.rank is None for host in ours):
        return
    ranks = {host.rank for host in ours}
    for rank in range(required_nodes):
        if rank not in ranks:
            yield (
                f"gang {name}: no node has rank {rank}; "
                f"the recipe needs ranks 0 to {required_nodes - 1}"
            )


def _node(host: _Host, required_nodes: int) -> Node:
    values = cast("dict[str, Any]", host.values)
    unsaid = [key for key in FABRIC_KEYS if key not in values and required_nodes > 1]
    return Node(
        name=host.name,
        rank=values["vllm_rank"],
        fabric_address=values.get("vllm_fabric_address", ""),
        interfaces=values.get("vllm_interfaces", ()),
        hcas=values.get("vllm_hcas", ()),
        hf_cache=values["vllm_hf_cache"],
        gpus=values.get("vllm_gpus", True),
        waive=values.get("vllm_waive", ()),
        derived=tuple(unsaid),
        alert=values.get("vllm_alert", ""),
    )
