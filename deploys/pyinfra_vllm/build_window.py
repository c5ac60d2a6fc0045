"""The pause in which a head builds an image: whether it is needed, and its scripts. Pure."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import States, image_source
from pyinfra_vllm.image import Build
from pyinfra_vllm.image_origin import refusal
from pyinfra_vllm.node.models import FileState
from pyinfra_vllm.node_script import filled
from pyinfra_vllm.release import Release

LEASE = 300
"""Seconds after the last renewal until the old release serves again."""

RENEW_EVERY = 10
"""Seconds between two renewals; the unit that builds renews as often."""

COMMAND = "python3 - pyinfra-vllm.window.v1"

_SCRIPT = Path(__file__).parent / "node" / "window.py"
_SLOT = "REQUEST: dict[str, Any] = {}\n"


def is_needed(release: Release, build: Build, states: States) -> bool:
    """Whether the image must be built, and the head serves and has no room for it."""
    head = states.get(release.content.gang.head.name)
    if head is None or image_source(release, states):
        return False
    # One that an earlier run has left open goes on, with this run to renew it.
    marker = head.file(paths.paused(release.content.gang.name))
    return has_lease(marker) or refusal(build, head) is not None


def has_lease(marker: FileState | None) -> bool:
    """Whether the mark of a pause is that of a window."""
    try:
        return json.loads((marker and marker.text) or "{}").get("lease") is not None
    except (ValueError, AttributeError):
        return False


def opening(gang: str, who: str, tag: str) -> str:
    """Script that pauses a gang, if nobody has paused it."""
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    why = f"build window for {tag}"
    document = {"schema": 1, "who": who, "when": now, "why": why, "lease": LEASE}
    return _script("open", gang, document=document)


def renewing(gang: str) -> str:
    """Script that renews the lease; it fails when there is no window any more."""
    return _script("renew", gang)


def closing(gang: str) -> str:
    """Script that ends the pause, if it is that of a window."""
    return _script("close", gang)


def _script(step: str, gang: str, **request: Any) -> str:
    return filled(_SCRIPT, _SLOT, "REQUEST", {"do": step, "path": paths.paused(gang), **request})
