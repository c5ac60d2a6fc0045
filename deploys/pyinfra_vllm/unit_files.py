"""What systemd and the agent read of one gang: the same text for every release. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.node.collect.gang import DROP_IN_ROOTS
from pyinfra_vllm.rendering import render

PROMISED = frozenset(
    (
        "ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost", "ExecCondition",
        "Type", "NotifyAccess", "Restart", "RestartSec", "RestartPreventExitStatus",
        "StartLimitIntervalSec", "StartLimitBurst", "KillMode", "KillSignal", "SendSIGKILL",
        "User", "Group", "PrivateTmp", "PrivateNetwork", "PrivateDevices", "ProtectSystem",
        "ReadWritePaths", "ReadOnlyPaths", "InaccessiblePaths", "RootDirectory",
        "Requires", "BindsTo", "PartOf", "RequiresMountsFor", "Conflicts", "RefuseManualStart",
    )
)  # fmt: skip
"""Keys that a drop-in of others may not set: a gang with them doesn't heal as we promise."""


def broken_promises(unit: str, drop_ins: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Drop-in of this unit alone -> keys in it that a drop-in may not set.

    Those of systemd's own folders for all units aren't ours to judge.
    """
    own = tuple(f"{root}/{unit}.d/" for root in DROP_IN_ROOTS)
    found = {path: sorted(PROMISED & set(keys)) for path, keys in drop_ins.items()}
    return {path: keys for path, keys in found.items() if keys and path.startswith(own)}


def unit_files(gang: str) -> dict[str, str]:
    """Path on the node -> text."""
    return {
        f"{paths.UNIT_ROOT}/{paths.unit(gang)}": render(
            "systemd/vllm.service.j2", gang=gang, paths=paths
        ),
        paths.TMPFILES: render("systemd/tmpfiles.conf.j2", gang=gang, paths=paths),
    }


def _beyond(addresses: tuple[str, ...], known: str | None, most: int) -> list[str]:
    """Addresses of ranks that only a larger release has."""
    try:
        found = [str(address) for address in json.loads(known or "{}")["addresses"]]
    except (ValueError, LookupError, TypeError):
        return []
    more = found[len(addresses) :]
    is_same = tuple(found[: len(addresses)]) == addresses
    is_ours = is_same and len(found) <= most and not set(more) & set(addresses)
    return more if is_ours else []


def members_text(gang: Gang, node: Node, known: str | None = None, most: int = 0) -> str:
    """``gang.json`` of one node.

    ``known``: what it has. A release for fewer ranks keeps the addresses of the others, as far
    as the inventory has so many nodes (``most``): the head may go back to a release that needs
    them, and holds them meanwhile.
    """
    document = {
        "schema": 1,
        "gang": gang.name,
        "rank": node.rank,
        "addresses": [*gang.addresses, *_beyond(gang.addresses, known, most)],
        "port": paths.TETHER_PORT,
        "alert": node.alert,
    }
    return json.dumps(document, indent=2) + "\n"
