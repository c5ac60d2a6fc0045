"""What systemd and the agent read of one gang: the same text for every release. Pure."""

from __future__ import annotations

import json

from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.rendering import render


def unit_files(gang: str) -> dict[str, str]:
    """Path on the node -> text."""
    return {
        f"{paths.UNIT_ROOT}/{paths.unit(gang)}": render(
            "systemd/vllm.service.j2", gang=gang, paths=paths
        ),
        paths.TMPFILES: render("systemd/tmpfiles.conf.j2", gang=gang, paths=paths),
    }


def members_text(gang: Gang, node: Node) -> str:
    """``gang.json`` of one node."""
    document = {
        "schema": 1,
        "gang": gang.name,
        "rank": node.rank,
        "addresses": [member.fabric_address for member in gang.nodes],
        "port": paths.TETHER_PORT,
        "alert": node.alert,
    }
    return json.dumps(document, indent=2) + "\n"
