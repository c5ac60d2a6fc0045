"""Bring a node to the point where its engine can start.

Runs as a job (:mod:`jobs`), because a dead file server or docker daemon can
hang it for ever. It says ``{"step": …}`` before everything that may hang,
``{"note": …}`` for what the journal should keep, and at its end
``{"unmet": …}`` or ``{"start": …}``; facts of the release as soon as it knows them.
"""

from __future__ import annotations

from pathlib import Path

from . import compose, container, docker, gates, gid, launch, paths
from .errors import Unmet
from .jobs import Say
from .launch import Launch


def prepare(gang: str, say: Say) -> None:
    """Remove what an earlier start left, check every precondition, build the composed model."""
    try:
        rank, argv = _prepare(gang, say)
    except Unmet as unmet:
        say(unmet=str(unmet))
    except OSError as error:
        say(unmet=f"{error.filename or 'this node'}: {error.strerror or error}")
    else:
        say(
            start=argv,
            api=[rank.api.address, rank.api.port, rank.api.model],
            api_key=rank.environ.get("VLLM_API_KEY"),
            start_timeout=rank.start_timeout,
        )


def _prepare(gang: str, say: Say) -> tuple[Launch, list[str]]:
    say(step="asks docker for old containers of this gang")
    removed = docker.remove_own(gang)
    if removed:
        say(note=f"removed {removed} container(s) that an earlier start left")
    say(step="reads the release")
    release = paths.here(paths.current(gang))
    rank = launch.load(release, gang)
    say(release=rank.release, rank=rank.rank)
    say(step="looks for the image")
    docker.check_name(rank)
    image = docker.image_id(rank)
    say(step="looks for " + ", ".join(mount.source for mount in rank.mounts))
    gates.check_mounts(rank.mounts, rank.composed)
    gates.check_address(rank.environ.get("VLLM_HOST_IP"))
    gates.check_ports(gates.ports(rank))
    _compose(release, rank, say)
    return rank, container.run(rank, image, gid.environ(rank.environ.get("NCCL_IB_HCA")))


def _compose(release: Path, rank: Launch, say: Say) -> None:
    keep = None
    if rank.composed is not None:
        say(step=f"composes the model in {rank.composed}")
        say(note=compose.compose(release))
        keep = Path(rank.composed).name
    compose.sweep(paths.here(paths.composed_root(rank.gang)), keep)
