"""lab.json: what has been decided about a lab, for later commands and for the inventory."""

from __future__ import annotations

import ipaddress
import json

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import network
from pyinfra_vllm.lab.layout import STATE, Layout, check_name
from pyinfra_vllm.lab.shell import locked, write


def load(name: str) -> Layout | None:
    """The lab ``name`` when there is one, running or not; UserError for a broken lab.json."""
    path = STATE / check_name(name) / "lab.json"
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text())
        return Layout(name, ipaddress.IPv4Network(document["network"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: not readable ({error}); "
            f"`pyinfra-vllm lab --name {name} down` removes the lab and its state"
        ) from error


def require(name: str) -> Layout:
    """The lab ``name``; UserError with the command that makes it when there is none."""
    layout = load(name)
    if layout is None:
        raise UserError(
            f"there is no lab called {name!r} here; `pyinfra-vllm lab --name {name} up` makes it"
        )
    return layout


def load_or_create(name: str) -> Layout:
    """The lab ``name``, with a network that no other lab and no route of this machine uses."""
    check_name(name)
    with locked("networks"):
        layout = load(name)
        if layout is None:
            layout = Layout(name, network.choose(name, [*network.routed(), *_reserved()]))
            save(layout)
        return layout


def save(layout: Layout) -> None:
    document = {
        "schema": 1,
        "name": layout.name,
        "network": str(layout.network),
        "bridge": layout.bridge,
        "ssh_key": str(layout.key),
        "known_hosts": str(layout.known_hosts),
        "ssh_config": str(layout.ssh_config),
        "machines": [
            {"name": machine.name, "rank": machine.rank, "address": machine.address}
            for machine in layout.machines
        ],
    }
    write(layout.state / "lab.json", json.dumps(document, indent=2) + "\n")


def _reserved() -> list[ipaddress.IPv4Network]:
    """Networks of all labs, those that are down and keep their disks included."""
    found = []
    for path in STATE.glob("*/lab.json"):
        layout = load(path.parent.name)
        if layout is not None:
            found.append(layout.network)
    return found
