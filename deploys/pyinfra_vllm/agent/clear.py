"""Remove the gang's containers when an engine failed or the unit is to stop."""

from __future__ import annotations

import os
import time
from typing import Any

from . import container, docker, evidence
from .errors import Unmet
from .jobs import Say
from .state import State

_CODES = {
    125: "docker refused to start it, or went away; its message is in the log above",
    126: "the entrypoint can't be run in this image",
    127: "the entrypoint is not in this image",
    137: "it was killed (SIGKILL)",
    139: "it crashed (SIGSEGV)",
    143: "it was asked to end (SIGTERM)",
}


def about(state: State, code: int | None) -> dict[str, Any] | None:
    """What is known of the start that ends, for the evidence; None when there was none."""
    tethered = state.tether
    if tethered.start is None or state.engine_started is None or tethered.end is None:
        return None
    end = tethered.end
    return {
        "start": tethered.start.number,
        "nonce": tethered.start.nonce,
        "release": tethered.wanted,
        "rank": tethered.rank,
        "began": state.engine_started.wall,
        "ended": time.time(),
        "served": tethered.served,
        "exit_code": code,
        "first": {"rank": end.rank, "exit_code": end.code, "text": end.text},
    }


def clear(
    gang: str,
    gently: bool,
    code: int | None,
    client: int | None,
    about: dict[str, Any] | None,
    say: Say,
) -> None:
    """The job: says ``{"cleared": detail}`` whatever docker answers.

    ``gently``: the engine may end by itself first. ``code``: the exit code whose
    reason is looked for in what docker knows of the container. ``client``: pid of
    a docker client that still runs, which may yet create the container. ``about``:
    what to keep as evidence.
    """
    detail = _CODES.get(code or 0, "")
    end = time.monotonic() + (container.STOP_SECONDS + 10 if gently else 15)
    try:
        if code is not None:
            detail = _last_state(gang) or detail
        _clear_once(gang, gently)
        while client is not None and _lives(client) and time.monotonic() < end:
            time.sleep(0.2)
            _clear_once(gang, gently)
    except Unmet as unmet:
        detail = "; ".join(filter(None, (detail, str(unmet))))
    if about is not None:
        _keep(gang, about, say)
    say(cleared=detail)


def _keep(gang: str, about: dict[str, Any], say: Say) -> None:
    try:
        evidence.keep(gang, about)
    except OSError as error:
        say(note=f"no evidence is kept of start {about['start']}: {error}")


def _clear_once(gang: str, gently: bool) -> None:
    ids = docker.own_containers(gang)
    if ids and gently:
        docker.ask(container.stop(ids), seconds=container.STOP_SECONDS + 8.0)
    if ids:
        docker.remove_own(gang)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _last_state(gang: str) -> str:
    try:
        state = docker.ask(container.last_state(docker.own_containers(gang)[0]))[0]
    except (Unmet, IndexError):
        return ""
    killed, _, error = state.partition(" ")
    if killed == "true":
        return "memory ran out: the kernel killed it (see dmesg)"
    return error
