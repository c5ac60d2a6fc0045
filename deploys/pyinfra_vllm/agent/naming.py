"""Who is missing, in words. Pure."""

from __future__ import annotations

from .said import HEAD, Said
from .tether import Tether


def missing(now: Tether, names: tuple[str, ...], trouble: str = "") -> str:
    """What an assembling rank waits for; "" when only its own look is not done yet.

    ``names``: of the nodes by rank. ``trouble``: why a worker has no connection.
    """
    if not now.is_head:
        return _missing_to_worker(now, names, trouble)
    lacks = [f"this node: {now.lacks}"] if now.lacks else []
    for rank in range(1, now.size):
        lacks += _lack(now.heard[rank], now.wanted, names[rank])
    return "; ".join(lacks)


def _lack(said: Said | None, wanted: str, name: str) -> list[str]:
    if said is None:
        return [f"{name} is not connected"]
    if said.word == "lack":
        return [f"{name} lacks: {said.text}"]
    if said.word == "have" and said.release == wanted:
        return []
    return [f"{name} is not ready yet"]


def _missing_to_worker(now: Tether, names: tuple[str, ...], trouble: str) -> str:
    said = now.heard[HEAD]
    if said is None:
        return f"{names[HEAD]}, the head, is not reached" + (f": {trouble}" if trouble else "")
    if now.lacks:
        return f"this node: {now.lacks}"
    if said.word == "hold":
        return f"{names[HEAD]}, the head: {said.text or 'has no release to serve'}"
    if now.ready:
        return f"{names[HEAD]}, the head, opens no start yet: {said.text or 'others are missing'}"
    return ""
