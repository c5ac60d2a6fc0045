"""What happens to a run of the agent (events) and what it does about it (actions). Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Address = tuple[str, int, str]
"""Address, port and public model name of an API."""


@dataclass(frozen=True)
class Moment:
    """``wall``: Unix seconds, for people; ``steady``: seconds that no clock change moves."""

    wall: float
    steady: float


@dataclass(frozen=True)
class Step:
    """Preparing does this now."""

    detail: str


@dataclass(frozen=True)
class Known:
    """The release is read."""

    release: str
    rank: int


@dataclass(frozen=True)
class Missing:
    """A precondition is not met."""

    detail: str


@dataclass(frozen=True)
class Prepared:
    """Everything is there."""

    argv: tuple[str, ...]
    api: Address
    api_key: str | None
    start_timeout: float


@dataclass(frozen=True)
class Completed:
    """The head answered a completion."""


@dataclass(frozen=True)
class NotYet:
    """The head did not answer a completion."""

    detail: str


@dataclass(frozen=True)
class Exited:
    """The engine, or the docker client it hangs on, is gone."""

    code: int


@dataclass(frozen=True)
class StopAsked:
    """systemd or an operator wants the unit down."""


@dataclass(frozen=True)
class Cleared:
    """No container of the gang is left, or docker doesn't answer. ``detail``: how it ended."""

    detail: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Step | Known | Missing | Prepared | Completed | NotYet | Exited | StopAsked | Cleared | Tick


@dataclass(frozen=True)
class Prepare:
    """Look at the preconditions in ``delay`` seconds."""

    delay: float = 0.0


@dataclass(frozen=True)
class Start:
    """Start the engine."""

    argv: tuple[str, ...]


@dataclass(frozen=True)
class Ask:
    """Ask for a completion in ``delay`` seconds."""

    prepared: Prepared
    delay: float = 0.0


@dataclass(frozen=True)
class Clear:
    """Remove the gang's containers; ``gently``: let the engine end by itself first."""

    gently: bool


@dataclass(frozen=True)
class Leave:
    """End the agent."""

    code: int


Action = Prepare | Start | Ask | Clear | Leave


def heard(word: dict[str, Any]) -> Event | None:
    """The event that a job's document tells of, if any."""
    match word:
        case {"step": str(detail)}:
            return Step(detail)
        case {"release": str(release), "rank": int(rank)}:
            return Known(release, rank)
        case {"unmet": str(detail)}:
            return Missing(detail)
        case {"start": list(argv), "api": [str(address), int(port), str(model)]}:
            api = (address, port, model)
            return Prepared(tuple(argv), api, word["api_key"], float(word["start_timeout"]))
        case {"completed": True}:
            return Completed()
        case {"completed": False, "detail": str(detail)}:
            return NotYet(detail)
        case {"cleared": str(detail)}:
            return Cleared(detail)
    return None
