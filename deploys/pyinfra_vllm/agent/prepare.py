"""Bring a node to the point where its engine can start.

Runs as jobs (:mod:`jobs`), because a dead file server or docker daemon can hang them
for ever. They say ``{"step": …}`` before everything that may hang, ``{"note": …}``
for what the journal should keep, and what came of it at their end.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import (
    caches,
    compose,
    container,
    docker,
    gates,
    gid,
    launch,
    members,
    memory,
    pace,
    paths,
    secret_values,
)
from .errors import Absent, Unmet
from .jobs import Say
from .launch import Launch
from .said import HEAD

_TIMEOUT = "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"
"""vLLM's own limit for one step of the engine, in seconds."""


def tidy(gang: str, say: Say) -> None:
    """Remove the containers that an earlier start left."""
    say(step="asks docker for old containers of this gang")
    try:
        removed = docker.remove_own(gang)
    except Unmet as unmet:
        say(tidied=str(unmet))
        return
    if removed:
        say(note=f"removed {removed} container(s) that an earlier start left")
    say(tidied="")


def prepare(gang: str, release: str, say: Say) -> None:
    """Check every precondition of ``release``, and build the composed model."""
    try:
        rank, argv = _prepare(gang, release, say)
    except Unmet as unmet:
        say(unmet=str(unmet), release=release, absent=isinstance(unmet, Absent))
    except OSError as error:
        what = f"{error.filename or 'this node'}: {error.strerror or error}"
        say(unmet=what, release=release)
    else:
        say(
            start=argv,
            release=release,
            size=rank.size,
            api=[rank.api.address, rank.api.port, rank.api.model],
            api_key=secret_values.check(gang, rank.secrets).get("VLLM_API_KEY"),
            start_timeout=rank.start_timeout,
            patience=_patience(rank.environ.get(_TIMEOUT, "")),
        )


def _patience(timeout: str) -> float:
    try:
        return pace.seconds(float(timeout))
    except ValueError:
        return 0.0


def _prepare(gang: str, release: str, say: Say) -> tuple[Launch, list[str]]:
    say(step="reads the release")
    folder = paths.here(f"{paths.releases(gang)}/{release}")
    if not (folder / paths.LAUNCH).is_file():
        raise Absent(f"{folder / paths.LAUNCH}: is not there; run the deploy")
    rank = launch.load(folder, gang)
    _check_members(gang, rank)
    secret_values.check(gang, rank.secrets)
    say(step="looks for room on the disks")
    memory.check_disks(str(paths.here(path)) for path in _DISKS)
    say(step="looks for the image")
    docker.check_name(rank)
    image = docker.image_id(rank)
    say(step="looks for " + ", ".join(mount.source for mount in rank.mounts))
    caches.check_local(rank)
    gates.check_mounts(rank.mounts, rank.composed)
    gates.check_address(rank.environ.get("VLLM_HOST_IP"))
    gates.check_ports(gates.ports(rank))
    _compose(folder, rank, say)
    say(step="looks for memory")
    memory.check(rank)
    if caches.clear_autotune(rank):
        say(note=f"removed {caches.AUTOTUNE}: every start begins without it, on all ranks")
    return rank, container.run(rank, image, gid.environ(rank.environ.get("NCCL_IB_HCA")))


def _check_members(gang: str, rank: Launch) -> None:
    """Absent when the head doesn't know where all ranks of the release are."""
    if rank.rank == HEAD and (known := members.load(gang).size) < rank.size:
        raise Absent(
            f"{paths.members(gang)}: knows {known} of the {rank.size} ranks of the release; "
            "deploy its recipe"
        )


_DISKS = (paths.STATE_ROOT, paths.CACHE_ROOT, paths.COMPOSED_ROOT, "/var/lib/docker")


def _compose(release: Path, rank: Launch, say: Say) -> None:
    keep = None
    if rank.composed is not None:
        say(step=f"composes the model in {rank.composed}")
        done = compose.compose(release, lambda text: say(step=text))
        if not done.partition("\n")[0].endswith("as they should be"):
            say(note=done)
        keep = Path(rank.composed).name
    compose.sweep(paths.here(paths.composed_root(rank.gang)), keep)


def move_current(gang: str, release: str) -> str:
    """``current`` names what this node last started. Returns what went wrong, "" if nothing."""
    link = paths.here(paths.current(gang))
    target = f"releases/{release}"
    try:
        if link.is_symlink() and os.readlink(link) == target:  # noqa: PTH115
            return ""
        fresh = link.with_name(f".{link.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target)
        fresh.rename(link)
    except OSError as error:
        return f"{link} is not moved to {release[:12]}: {error.strerror}"
    return ""
