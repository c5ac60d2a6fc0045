"""Operation: the secret that the agents of a gang prove to each other."""

from __future__ import annotations

import base64
import binascii
import secrets
from weakref import WeakKeyDictionary

from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    look,
    look_at_gang,
    place,
    run,
    show,
)
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release

MODE = 0o600
_SIZE = 32
_FRESH: WeakKeyDictionary[State, dict[str, bytes]] = WeakKeyDictionary()


@operation()
@changing
def shared(release: Release) -> Commands:
    """All nodes have the same secret: made once when no rank has one, else copied.

    It goes through standard input only, is in no file of a release, and is never shown.

    + release: what the gang is to serve
    """
    gang = release.content.gang
    if gang.size == 1:
        return
    states = look_at_gang(release)
    holder = _holder(release, states)
    here = look(release)
    if _digest(gang.name, here) and _digest(gang.name, here) == _digest(
        gang.name, states[holder] if holder else None
    ):
        return
    show(f"Will {'copy' if holder else 'make'} the secret {paths.secret(gang.name)}")
    yield from change(called(_share, gang.name, holder))


def _holder(release: Release, states: dict[str, NodeState]) -> str | None:
    """First node in rank order that has a secret."""
    gang = release.content.gang
    names = [node.name for node in gang.nodes if node.name in states]
    return next((name for name in names if _digest(gang.name, states[name])), None)


def _digest(gang: str, state: NodeState | None) -> str | None:
    """sha256 of a node's secret when it is as it should be."""
    found = state.file(paths.secret(gang)) if state else None
    if found is None or found.mode != f"{MODE:04o}" or found.owner != "root":
        return None
    return found.sha256 if found.size >= _SIZE else None


def _share(state: State, host: Host, gang: str, holder: str | None) -> bool:
    secret = _read(state, host, gang, holder) if holder else _fresh(host, gang)
    ok, _ = run(host, host, place([placement.file(paths.secret(gang), secret, MODE)]))
    return ok


def _fresh(host: Host, gang: str) -> bytes:
    return _FRESH.setdefault(host.state, {}).setdefault(gang, secrets.token_bytes(_SIZE))


def _read(state: State, host: Host, gang: str, holder: str) -> bytes:
    at = state.inventory.get_host(holder)
    ok, output = run(at, host, StringCommand("base64", "-w0", paths.secret(gang)))
    try:
        secret = base64.b64decode(output.stdout.strip(), validate=True) if ok else b""
    except binascii.Error:
        secret = b""
    if len(secret) < _SIZE:
        raise UserError(f"{holder}: {paths.secret(gang)} can't be read")
    return secret
