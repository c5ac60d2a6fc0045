"""Names, addresses and paths of a lab: pure, derived from its name and its network."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyinfra_vllm.errors import UserError

CACHE = Path("/var/cache/pyinfra-vllm-lab")
STATE = Path("/var/lib/pyinfra-vllm-lab")
LOCKS = Path("/run/lock")

DEFAULT_NAME = "lab"
SIZE = 4
HUB = "/mnt/nas/hub"
"""Hub folder of the Hugging Face cache as a node sees it."""
BASE_IMAGE = "pyinfra-vllm-lab/debian:bookworm"
WHEELS_IMAGE = "pyinfra-vllm-lab/wheels:1"

_NAME = re.compile(r"[a-z][a-z0-9]{0,8}")
_POOL = ipaddress.IPv4Network("10.213.0.0/16")


@dataclass(frozen=True)
class Machine:
    """One node of a lab; ``rank`` counts from 0."""

    name: str
    rank: int
    address: str


@dataclass(frozen=True)
class Layout:
    """Where everything of the lab ``name`` is; ``network`` is an IPv4 /24."""

    name: str
    network: ipaddress.IPv4Network

    @property
    def state(self) -> Path:
        return STATE / self.name

    @property
    def bridge(self) -> str:
        return f"vl-{self.name}"

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(
            Machine(f"{self.name}-{rank}", rank, str(self.network[10 + rank]))
            for rank in range(SIZE)
        )

    @property
    def key(self) -> Path:
        """The private ssh key that every node accepts for root."""
        return self.state / "keys" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "keys" / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """An ssh_config(5) that knows every node by name."""
        return self.state / "keys" / "ssh_config"

    @property
    def nas(self) -> Path:
        """Folder of this machine that the nodes see, read-only, as /mnt/nas."""
        return self.state / "nas"

    def disk(self, machine: Machine) -> Path:
        """Folder with the overlay (``upper``, ``work``, ``root``) and ``docker`` of a node."""
        return self.state / "machines" / machine.name

    @property
    def lower(self) -> Path:
        """Link to the shared root below the overlays; it stays the same for the lab's life."""
        return self.state / "lower"

    def root(self, machine: Machine) -> Path:
        """The node's ``/`` as this machine sees it (mounted while the lab is up)."""
        return self.disk(machine) / "root"

    def log(self, machine: Machine) -> Path:
        """Console output of the node and of its keeper."""
        return self.state / "logs" / f"{machine.name}.log"

    def machine(self, name: str) -> Machine:
        """The node called ``name`` (``lab-2`` or just ``2``); UserError when there is none."""
        for machine in self.machines:
            if name in (machine.name, str(machine.rank)):
                return machine
        names = ", ".join(machine.name for machine in self.machines)
        raise UserError(f"lab {self.name}: no node {name!r}; its nodes are {names}")


def check_name(name: str) -> str:
    """``name`` itself when it fits interface and machine names; UserError otherwise."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"lab name {name!r}: use up to 9 characters, lower-case letters and digits, "
            "the first one a letter"
        )
    return name


def networks(name: str) -> Iterator[ipaddress.IPv4Network]:
    """All networks a lab may use, the one derived from ``name`` first."""
    pool: list[ipaddress.IPv4Network] = list(_POOL.subnets(new_prefix=24))
    first = hashlib.sha256(name.encode()).digest()[0]
    yield from pool[first:] + pool[:first]
