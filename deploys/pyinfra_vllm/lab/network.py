"""The bridge of a lab, its NAT, and the choice of a network that nothing else uses."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab.layout import Layout, networks
from pyinfra_vllm.lab.shell import attempt, run

Rule = tuple[str, ...]


def choose(name: str, taken: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """First network for lab ``name`` that overlaps none of ``taken``; UserError when all do."""
    used = list(taken)
    for network in networks(name):
        if not any(network.overlaps(other) for other in used):
            return network
    raise UserError(f"lab {name}: no free /24 network is left below 10.213.0.0/16")


def routed(but: str = "") -> list[ipaddress.IPv4Network]:
    """IPv4 networks that this machine has a route to, without the default and those of ``but``."""
    routes = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]))
    found = []
    for route in routes:
        if route["dst"] != "default" and route.get("dev") != but:
            found.append(ipaddress.ip_network(route["dst"], strict=False))
    return [network for network in found if isinstance(network, ipaddress.IPv4Network)]


def mtu() -> int:
    """MTU of the interface of the default route, 1500 without one."""
    routes = json.loads(run(["ip", "-json", "-4", "route", "show", "default"]))
    if not routes:
        return 1500
    return int(Path(f"/sys/class/net/{routes[0]['dev']}/mtu").read_text())


def rules(layout: Layout) -> tuple[tuple[str, str, Rule], ...]:
    """(table, chain, rule) of everything the lab has in iptables.

    FORWARD is accepted in and out of the bridge because a dockerd on the host
    sets that chain to DROP, and bridged packets pass it too.
    """
    masquerade = (
        "--source", str(layout.network),
        "!", "--out-interface", layout.bridge,
        "--jump", "MASQUERADE",
    )  # fmt: skip
    return (
        ("nat", "POSTROUTING", masquerade),
        ("filter", "FORWARD", ("--in-interface", layout.bridge, "--jump", "ACCEPT")),
        ("filter", "FORWARD", ("--out-interface", layout.bridge, "--jump", "ACCEPT")),
    )


def hardware_address(layout: Layout) -> str:
    """Of the bridge. Left to the kernel, it is that of a port, and changes when the port goes.

    Then the other nodes send to an address that is gone until they ask anew (30 s and more).
    """
    gateway = ipaddress.IPv4Address(layout.gateway)
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x76, *gateway.packed))


def ensure(layout: Layout) -> None:
    """Bring the bridge and the NAT of the lab up, whatever part of them is there already."""
    if any(layout.network.overlaps(other) for other in routed(but=layout.bridge)):
        raise UserError(
            f"lab {layout.name}: this machine now uses {layout.network} elsewhere; "
            f"`pyinfra-vllm lab --name {layout.name} down` and `up` choose another network"
        )
    if not Path(f"/sys/class/net/{layout.bridge}").exists():
        run(
            [
                *("ip", "link", "add", layout.bridge),
                *("address", hardware_address(layout)),
                *("mtu", str(mtu())),
                *("type", "bridge"),
            ]
        )
    run(["ip", "address", "replace", f"{layout.gateway}/24", "dev", layout.bridge])
    run(["ip", "link", "set", layout.bridge, "up"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")
    for table, chain, rule in rules(layout):
        if attempt(_iptables(table, "--check", chain, rule)).returncode != 0:
            run(_iptables(table, "--insert", chain, rule))


def remove(bridge: str) -> bool:
    """Remove the bridge and every iptables rule that names it; False when there was nothing."""
    found = False
    for table in ("nat", "filter"):
        for line in attempt(
            ["iptables", "--wait", "--table", table, "--list-rules"]
        ).stdout.splitlines():
            words = line.split()
            if bridge in words and words[0] == "-A":
                run(_iptables(table, "--delete", words[1], words[2:]))
                found = True
    if Path(f"/sys/class/net/{bridge}").exists():
        run(["ip", "link", "delete", bridge])
        found = True
    return found


def _iptables(table: str, action: str, chain: str, rule: Sequence[str]) -> list[str]:
    return ["iptables", "--wait", "--table", table, action, chain, *rule]
