"""Checks of the fabric: devices, links, addresses, ports, and that the nodes reach each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from pyinfra_vllm import serving
from pyinfra_vllm.node.models import Interface, RdmaPort
from pyinfra_vllm.preflight.finding import STOPPED, Place, Results, fail, ok, stop_it, unknown, warn

_MTU = 4200
"""An Ethernet MTU below this leaves an active RDMA MTU under 4096."""
_FIX_MTU = "sudo ip link set dev {} mtu 9000 (and make it last in netplan or NetworkManager)"


def rdma_devices(place: Place) -> Results:
    """Without device nodes NCCL falls back to sockets, silently and slowly."""
    if not place.node.hcas:
        return
    devices = place.state.rdma.required.devices
    if any(name.startswith("uverbs") for name in devices):
        yield ok(f"/dev/infiniband has {', '.join(devices)}")
    else:
        yield fail(
            "/dev/infiniband has no uverbs device", "NCCL would fall back to sockets",
            "sudo modprobe mlx5_ib && sudo modprobe ib_uverbs",
        )  # fmt: skip


def hcas(place: Place) -> Results:
    """Every device of the inventory is there, and its link is up."""
    known = place.state.rdma.required
    for name in place.node.hcas:
        ports = known.ports_of(name)
        if not ports:
            there = ", ".join(sorted({port.hca for port in known.ports})) or "none"
            yield fail(f"{name} (vllm_hcas) is no RDMA device here", f"there are: {there}",
                       "correct the inventory, or leave vllm_hcas out")  # fmt: skip
        for port in ports:
            shown = f"{name} is {port.state}, {port.rate or 0:g} Gb/s"
            if port.is_active:
                yield ok(shown)
            else:
                link = port.interfaces[0] if port.interfaces else "INTERFACE"
                yield fail(shown, "ACTIVE is needed",
                           f"check the cable, then: sudo ip link set dev {link} up")  # fmt: skip


def gid(place: Place) -> Results:
    """RoCE v2 over IPv4 needs an entry in each device's GID table, at an index that all share."""
    ports = list(_ports(place))
    indexes = [{gid.index for gid in port.gids if gid.is_roce_v2_ipv4} for port in ports]
    for port, found in zip(ports, indexes, strict=True):
        if port.link_layer == "Ethernet" and not found:
            yield fail(
                f"{port.hca} has no RoCE v2 entry for an IPv4 address", "",
                f"give {', '.join(port.interfaces) or 'its interface'} one: ip -brief address",
            )  # fmt: skip
    if indexes and all(indexes):
        common = set.intersection(*indexes)
        if common:
            yield ok(f"RoCE v2 at GID index {min(common)}")
        else:
            yield warn("the devices have RoCE v2 at different GID indexes",
                       "NCCL takes one for all and will choose itself")  # fmt: skip


def _ports(place: Place) -> Iterator[RdmaPort]:
    rdma = place.state.rdma.required
    for name in place.node.hcas:
        yield from rdma.ports_of(name)


def fabric_address(place: Place) -> Results:
    """The address is the node's own."""
    address = place.node.fabric_address
    if not address:
        return
    if place.state.has_address(address):
        yield ok(address)
    else:
        yield fail(
            f"{address} (vllm_fabric_address) is on none of its interfaces", "",
            "see: ip -brief address",
        )  # fmt: skip


def interfaces(place: Place) -> Results:
    """Every interface of the inventory is there and up."""
    known = {link.name: link for link in place.state.interfaces.required}
    for name in place.node.interfaces:
        link = known.get(name)
        if link is None:
            yield fail(f"{name} (vllm_interfaces) is no interface here",
                       f"there are: {', '.join(known)}", "correct the inventory")  # fmt: skip
        elif link.state == "down":
            yield fail(f"{name} is down", "", f"sudo ip link set dev {name} up")
        else:
            yield ok(f"{name} is {link.state}")


def subnets(place: Place) -> Results:
    """Two logical interfaces in one subnet send everything through the first of them."""
    owner: dict[str, str] = {}
    for link in _links(place):
        for network in map(ipaddress.ip_interface, link.networks):
            if network.version != 4:
                continue
            subnet = str(network.network)
            if owner.setdefault(subnet, link.name) != link.name:
                yield fail(f"{owner[subnet]} and {link.name} are both in {subnet}",
                           "each needs a subnet of its own")  # fmt: skip
                return
    if owner:
        yield ok(", ".join(owner))


def mtu(place: Place) -> Results:
    """A small MTU halves the speed of RDMA."""
    for link in _links(place):
        if not place.node.hcas:
            return
        if link.mtu >= _MTU:
            yield ok(f"{link.name}: MTU {link.mtu}")
        else:
            yield warn(f"{link.name} has MTU {link.mtu}",
                       f"{_MTU} or more gives RDMA packets of 4096 bytes",
                       _FIX_MTU.format(link.name))  # fmt: skip


def _links(place: Place) -> list[Interface]:
    return [link for link in place.state.interfaces.required if link.name in place.node.interfaces]


def reach(place: Place) -> Results:
    """Every other node's address answers, over this node's fabric address."""
    peers = place.state.peers.required
    for other in place.subject.gang.nodes:
        if other == place.node or other.name not in place.subject.states:
            continue
        peer = peers.get(other.fabric_address)
        if peer is None:
            yield unknown(f"it was not asked about {other.name}")
        elif not peer.answers:
            yield fail(
                f"{other.name} ({other.fabric_address}) can't be reached: {peer.answer}", "",
                f"ip route get {other.fabric_address}; is a firewall between them? sudo ufw status",
            )  # fmt: skip
        elif peer.source not in (place.node.fabric_address, None):
            yield warn(
                f"{other.fabric_address} is reached from {peer.source}",
                f"{place.node.fabric_address} is this node's fabric address",
                f"ip route get {other.fabric_address}",
            )
        else:
            yield ok(f"{other.name} answers")


def ports(place: Place) -> Results:
    """Nobody else has the API's port on the head, nor that of the rendezvous."""
    if not place.is_head:
        return
    taken = False
    for listener in place.state.listeners.required:
        if listener.container == place.container:
            continue
        port = listener.port or place.api_port
        if port not in (place.api_port, serving.MASTER_PORT):
            continue
        taken = True
        container = listener.container
        who = f"container {container}" if container else f"pid {listener.pid}"
        who += f" of unit {listener.unit}" if listener.unit else ""
        measured = f"port {port} is taken by {who} ({' '.join(listener.command)[:120]})"
        if place.is_stopped(listener):
            yield warn(measured, STOPPED)
            continue
        other = ", or give the recipe another --port" if port == place.api_port else ""
        yield fail(measured, "", f"{stop_it(place, listener, listener.pid)}{other}")
    if not taken:
        yield ok(f"ports {place.api_port} and {serving.MASTER_PORT} are free or ours")
