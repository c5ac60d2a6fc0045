"""Who is who in an inventory with several gangs, and which recipe is whose. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyinfra_vllm.cluster import MAIN, PREFIX, Gang, gang_of
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image_origin import builders
from pyinfra_vllm.suggest import did_you_mean

Data = Mapping[str, Any]

_PAIR = re.compile(r"([a-z0-9][a-z0-9-]*):(.+)")


@dataclass(frozen=True)
class Members:
    """``nodes``: data of every host that can be in a gang, by name; ``builders``: those that
    build images for others.
    """

    nodes: Mapping[str, Data]
    builders: frozenset[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all gangs."""
        return tuple(sorted({gang_name(data) for data in self.nodes.values()}))

    def of(self, gang: str) -> list[str]:
        """Names of the hosts of a gang."""
        return [name for name, data in self.nodes.items() if gang_name(data) == gang]

    def head(self, names: Sequence[str]) -> str:
        """Of some hosts of a gang the one with the lowest rank."""
        ranks = {name: self.nodes[name].get("vllm_rank") for name in names}
        known = [name for name, rank in ranks.items() if isinstance(rank, int)]
        return min(known or names, key=lambda name: ranks[name] or 0)

    def gang(self, name: str, required_nodes: int) -> Gang:
        """The gang that a recipe for so many nodes gets. UserError says all that is wrong."""
        twice = list(_in_two_gangs(self.nodes))
        if twice:
            raise UserError("\n".join(twice))
        return gang_of(self.nodes, required_nodes, name)

    def recipe(self, gang: str) -> object:
        """What the data of a gang's hosts says of its recipe; None when that is nothing.

        UserError when they disagree, or when it is one for gangs that aren't there.
        """
        said = {name: self.nodes[name].get("recipe") for name in self.of(gang)}
        if len({repr(value) for value in said.values()}) > 1:
            each = ", ".join(f"{name} has {value}" for name, value in said.items())
            raise UserError(f"gang {gang}: recipe differs between its nodes: {each}")
        value = next(iter(said.values()), None)
        pairs = _pairs(value)
        if pairs is None:
            return value
        for name in pairs:
            if name not in self.names:
                why = did_you_mean(name, self.names)
                raise UserError(f"recipe={value}: the inventory has no gang {name}; {why}")
        return pairs.get(gang)


def read(hosts: Mapping[str, Data]) -> Members:
    """From the data of every host of an inventory; who has no word of ours in it is no node.

    The gang alone says nothing: every host that a deploy runs on has its default.
    """
    said = {
        name: data
        for name, data in hosts.items()
        if any(key.startswith(PREFIX) and key != "vllm_gang" for key in data)
    } or hosts
    outside = builders(hosts)
    nodes = {name: data for name, data in said.items() if name not in outside}
    return Members(nodes, frozenset(outside))


def gang_name(data: Data) -> str:
    """The gang that a host is in."""
    return str(data.get("vllm_gang", MAIN))


def _pairs(value: object) -> dict[str, str] | None:
    """``a:x,b:y`` as gang -> recipe; None for what is one recipe for all."""
    if not isinstance(value, str) or not _PAIR.match(value):
        return None
    pairs: dict[str, str] = {}
    for part in value.split(","):
        found = _PAIR.fullmatch(part.strip())
        if found is None or found[1] in pairs:
            raise UserError(f"recipe={value}: expected each gang once, as GANG:RECIPE,GANG:RECIPE")
        pairs[found[1]] = found[2]
    return pairs


def _in_two_gangs(nodes: Mapping[str, Data]) -> Iterator[str]:
    """Two hosts of the inventory that are one machine, as far as ssh can tell."""
    first: dict[tuple[object, object], str] = {}
    for name, data in nodes.items():
        key = (data.get("ssh_hostname"), data.get("ssh_port"))
        other = first.setdefault(key, name) if key[0] else name
        if other != name and gang_name(data) != gang_name(nodes[other]):
            yield (
                f"{name}: it is the same machine as {other} (ssh_hostname {key[0]}), and they are "
                f"in two gangs, {gang_name(data)} and {gang_name(nodes[other])}; a node is in one"
            )
