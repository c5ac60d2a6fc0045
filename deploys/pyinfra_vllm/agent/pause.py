"""The mark that a gang is paused, and the lease that ends some pauses by themselves.

A pause that a person asked for lasts until a resume. That of a build window has ``lease``,
seconds since the mark was last touched: whoever needs the window touches it. When nobody does
any more, be the controller gone for good, the gang serves again.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from . import pace

_AHEAD = 60.0
"""Seconds by which a mark may be younger than now; a clock that was set back must not pause."""


def text(path: Path) -> str:
    """Who paused the gang, when and why; "" when nobody did, or when the lease is over.

    The mark alone counts; what it says of who and why is for people.
    """
    try:
        known = path.read_text(errors="replace")
        touched = path.stat().st_mtime
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"paused ({path}: {os.strerror(error.errno or 0)})"
    try:
        marker = json.loads(known)
        if _is_over(marker.get("lease"), time.time() - touched):
            return ""
        return f"paused by {marker['who']} at {marker['when']}: {marker['why']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"paused: {path} is there"


def has_lease(path: Path) -> bool:
    """Whether the pause may end by itself."""
    try:
        return json.loads(path.read_text(errors="replace")).get("lease") is not None
    except (OSError, ValueError, AttributeError):
        return False


def _is_over(lease: object, age: float) -> bool:
    if isinstance(lease, bool) or not isinstance(lease, (int, float)):
        return False
    return age > pace.seconds(lease) or age < -_AHEAD
