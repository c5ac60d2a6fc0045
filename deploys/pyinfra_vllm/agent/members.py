"""Who belongs to the gang: ``gang.json`` and the secret, laid by the deploy."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from . import document, paths
from .errors import Unmet


@dataclass(frozen=True)
class Members:
    """``addresses``: the fabric addresses by rank; ``alert``: a shell command, "" for none."""

    rank: int
    addresses: tuple[str, ...]
    port: int
    alert: str

    @property
    def size(self) -> int:
        """How many nodes the gang has."""
        return len(self.addresses)

    def name(self, rank: int) -> str:
        """A rank as people find its node."""
        address = self.addresses[rank] if rank < self.size else ""
        return f"rank {rank} ({address})" if address else f"rank {rank}"


def load(gang: str) -> Members:
    """The members of a gang; Unmet when the deploy has not said yet who they are."""
    source = document.read(paths.here(paths.members(gang)))
    members = Members(
        rank=source.number("rank"),
        addresses=source.words("addresses"),
        port=source.number("port"),
        alert=source.text("alert") if source.has("alert") else "",
    )
    if not 0 <= members.port < 1 << 16:
        raise Unmet(f"{source.file}: port {members.port} is none; run the deploy again")
    if not 0 <= members.rank < members.size:
        raise Unmet(f"{source.file}: rank {members.rank} is not among {members.size} addresses")
    return members


def secret(gang: str) -> bytes:
    """What all members know; Unmet when it is missing here, or readable for others."""
    path = paths.here(paths.secret(gang))
    try:
        known = path.read_bytes()
    except OSError as error:
        raise Unmet(f"{path}: {os.strerror(error.errno or 0)}; run the deploy") from None
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise Unmet(f"{path} can be read by others: chmod 0600 {path}")
    if len(known) < 32:
        raise Unmet(f"{path} is too short: remove it on every node and run the deploy")
    return known
