"""The node, or the builder, that sends an image to the nodes of a gang."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyinfra import host, state
from pyinfra.api import Host, State, StringCommand

from pyinfra_vllm import image_scripts
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States, image_lacking, image_on, image_source, nodes_of
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.inventory import members
from pyinfra_vllm.image import LABEL
from pyinfra_vllm.image_origin import KEY, Origin, origin
from pyinfra_vllm.image_scripts import SHARE_PORT
from pyinfra_vllm.operations.common import run
from pyinfra_vllm.questions import SHARE_UNIT
from pyinfra_vllm.release import Release

COMMAND = "python3 - pyinfra-vllm.image.v1"
_APART = 10
"""Between the ports of a builder that sends to several gangs."""
_LEASE = 3600
"""Seconds after which an offer ends by itself, should nobody withdraw it."""


@dataclass(frozen=True)
class Sender:
    """Who sends; ``image``, ``layers`` and ``size`` are empty while it is still to be built.

    ``node`` is the member of the gang that acts for it: itself, or the head for a builder.
    """

    host: Host
    node: Node
    address: str
    image: str = ""
    layers: tuple[str, ...] = ()
    size: int = 0
    unit: str = SHARE_UNIT
    port: int = SHARE_PORT
    """A builder may send to several gangs at once, to each in a unit of its own."""

    def is_for(self, node: Node) -> bool:
        """Whether this node carries out what the sender is to do."""
        return node == self.node


def origin_of(at: Host) -> Origin:
    """What the inventory says of a host. UserError when that is nothing known."""
    try:
        return origin(at.data.get(KEY))
    except ValueError as error:
        raise UserError(f"{KEY}: {error}") from None


def builder(at: Host) -> Host | None:
    """The host that builds for ``at``, which is one of the inventory outside the gang."""
    found = origin_of(at)
    if found.kind != "builder":
        return None
    there = {one.name: one for one in state.inventory}
    if found.value not in there:
        raise UserError(f"{KEY}: {found.value} is no host of the inventory")
    return there[found.value]


def sender(release: Release, states: States) -> Sender:
    """Who has the image, or is to build it."""
    gang = release.content.gang
    node = image_source(release, states)
    image = image_on(release, states[node.name]) if node else None
    if node and image:
        at = state.inventory.get_host(node.name)
        return Sender(at, node, node.fabric_address, image.id, image.layers, image.size)
    head = state.inventory.get_host(gang.head.name)
    outside = builder(head)
    if outside is None:
        return Sender(head, gang.head, gang.head.fabric_address)
    address = outside.data.get("vllm_fabric_address")
    if not address:
        raise UserError(
            f"{outside.name} builds the image, and the inventory doesn't say at which address "
            "the nodes reach it; add vllm_fabric_address there"
        )
    image_id, layers, size = _built(release, outside) if state.is_executing else ("", (), 0)
    number = members(head).names.index(gang.name)
    port, unit = SHARE_PORT + _APART * number, f"{SHARE_UNIT}-{gang.name}"
    return Sender(outside, gang.head, str(address), image_id, layers, size, unit, port)


def lacking(release: Release, states: States) -> list[Node]:
    """Nodes that need the image; the head too, when it is built outside the gang."""
    if image_source(release, states) is None and builder(host):
        return nodes_of(release, states)
    return image_lacking(release, states)


def offer(state: State, host: Host, found: Sender, token: str, receivers: int) -> bool:
    """Start the unit that sends; a step of an operation."""
    if not found.image:
        return False
    unit, folder = found.unit, f"{paths.STATE_ROOT}/{found.unit.removeprefix('pyinfra-vllm-')}"
    script = image_scripts.sharing(found.image, found.address, token, receivers, found.port)
    start = (
        f"systemctl stop {unit} 2>/dev/null; "
        f"systemctl reset-failed {unit} 2>/dev/null; "
        f"mkdir -p {folder} && chmod 0700 {folder} && cat > {folder}/share.py && "
        f"systemd-run --quiet --unit {unit} --property RuntimeMaxSec={_LEASE} "
        f"--property 'ExecStopPost=/bin/rm -rf {folder}' python3 {folder}/share.py"
    )
    ok, _ = run(found.host, host, StringCommand(start), False, script)
    return ok


def withdraw(state: State, host: Host, name: str, unit: str = SHARE_UNIT) -> bool:
    """Stop the unit that sends on the host ``name``; a step of an operation."""
    at = state.inventory.get_host(name)
    run(at, host, StringCommand(f"systemctl stop {unit} 2>/dev/null; true"))
    return True


def _built(release: Release, at: Host) -> tuple[str, tuple[str, ...], int]:
    """Id, layers and size of the image on a host outside the gang; empty when it isn't there."""
    label = f"label={LABEL}={release.content.build}"
    command = (
        f"docker image inspect $(docker image ls --quiet --no-trunc --filter {label} | head -n 1)"
    )
    ok, output = run(at, host, StringCommand(command))
    if not ok:
        return "", (), 0
    shown = json.loads("\n".join(output.stdout_lines))[0]
    return shown["Id"], tuple(shown["RootFS"]["Layers"]), int(shown.get("Size", 0))
