"""The GID index that NCCL must use, looked up at each start: it moves with reboots."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import paths

VARIABLE = "NCCL_IB_GID_INDEX"

_DEVICES = "/sys/class/infiniband"
_PORT = "ports/1"
_ROCE_V2 = "RoCE v2"
_IPV4 = "0000:0000:0000:0000:0000:ffff:"
"""How a GID that stands for an IPv4 address begins."""


def index(hcas: Iterable[str]) -> int | None:
    """Index of the RoCE v2 GID with an IPv4 address, equal on all ``hcas``; None if unknown.

    NCCL takes one number for all devices, so where they differ there is none to
    give. Several on one device: the lowest that all have.
    """
    found = [_indexes(paths.here(_DEVICES) / hca / _PORT) for hca in hcas]
    common = set.intersection(*found) if found else set()
    return min(common, default=None)


def environ(hcas: str | None) -> dict[str, str]:
    """The variable for the value of ``NCCL_IB_HCA``; unset if unknown: empty would read as 0."""
    known = index(hcas.split(",")) if hcas else None
    return {} if known is None else {VARIABLE: str(known)}


def _indexes(port: Path) -> set[int]:
    entries = port / "gids"
    if not entries.is_dir():
        return set()
    return {int(entry.name) for entry in entries.iterdir() if _is_wanted(port, entry)}


def _is_wanted(port: Path, entry: Path) -> bool:
    """An unused entry has a type file that can't be read (EINVAL), and a GID of zeros."""
    try:
        kind = (port / "gid_attrs" / "types" / entry.name).read_text().strip()
        return kind == _ROCE_V2 and entry.read_text().startswith(_IPV4)
    except OSError:
        return False
