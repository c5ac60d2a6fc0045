"""Interfaces, RDMA devices, who listens, and whether the other nodes answer."""

from __future__ import annotations

from pydantic import Field

from pyinfra_vllm.node.part import Model


class Listener(Model):
    """A process on a port that the gang needs; ``pid`` 0: it can't be seen. Secrets are masked.

    ``container`` is the name of the container that it belongs to or (docker-proxy) serves.
    ``unit``: the system unit that it belongs to.
    """

    port: int = 0
    pid: int
    process: str = ""
    command: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    container: str | None = None
    container_id: str | None = None
    unit: str | None = None


class Interface(Model):
    """``networks`` are the addresses with prefix; ``speed`` in Mb/s, None where there is none.

    ``physical``: it belongs to a device, as bridges and tunnels don't.
    """

    name: str
    addresses: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    mtu: int = 0
    state: str = ""
    mac: str = ""
    speed: int | None = None
    physical: bool = False


class Gid(Model):
    """An entry of a port's GID table that is in use."""

    index: int
    gid: str
    type: str = ""
    interface: str = ""

    @property
    def is_roce_v2_ipv4(self) -> bool:
        return self.type == "RoCE v2" and self.gid.startswith("0000:0000:0000:0000:0000:ffff:")


class RdmaPort(Model):
    """A port of an RDMA device; ``rate`` in Gb/s; ``counters`` count words of four bytes."""

    hca: str
    port: int = 1
    state: str = ""
    physical: str = ""
    rate: float | None = None
    link_layer: str = ""
    interfaces: tuple[str, ...] = ()
    gids: tuple[Gid, ...] = ()
    counters: dict[str, int] = Field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        return self.state == "ACTIVE"


class Rdma(Model):
    """``devices`` are the names in /dev/infiniband."""

    devices: tuple[str, ...] = ()
    ports: tuple[RdmaPort, ...] = ()

    def ports_of(self, hca: str) -> tuple[RdmaPort, ...]:
        """Ports of one device; empty when there is no such device."""
        return tuple(port for port in self.ports if port.hca == hca)


class Peer(Model):
    """Whether an address answers, and over which address of this node the kernel goes there."""

    source: str | None = None
    answer: str

    @property
    def answers(self) -> bool:
        return self.answer in ("open", "refused")
