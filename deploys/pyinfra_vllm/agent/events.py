"""What happens to a run of the agent. Values only; what it does about it is in :mod:`actions`.

Events of the protocol between the ranks are those of :mod:`tether`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from . import tether_events

Address = tuple[str, int, str]
"""Address, port and public model name of an API."""


@dataclass(frozen=True)
class Moment:
    """``wall``: Unix seconds, for people; ``steady``: seconds that no clock change moves."""

    wall: float
    steady: float


@dataclass(frozen=True)
class Hold:
    """Why the head opens no start. ``phase``: what that means for people."""

    phase: Literal["waiting", "paused", "failed"]
    text: str


@dataclass(frozen=True)
class Wished:
    """Head: the release to serve, and what forbids a start, if anything does.

    ``passed``: the release that served last. ``note``: what people must know of the wish.
    ``on_trial``: another limit than the release's own holds for its first completion.
    ``lent``: somebody measures it, and no completion is to be asked of an idle engine.
    """

    release: str
    hold: Hold | None
    switch: int = 0
    passed: str = ""
    note: str = ""
    on_trial: bool = False
    lent: bool = False


NO_WISH = Wished("", None)
"""What a worker has."""


@dataclass(frozen=True)
class Step:
    """A job does this now."""

    detail: str


@dataclass(frozen=True)
class Tidied:
    """No container of the gang is left on this node; ``missing``: why that isn't sure."""

    missing: str = ""


@dataclass(frozen=True)
class Missing:
    """A precondition of the release is not met; ``absent``: a part of the release itself."""

    release: str
    detail: str
    absent: bool = False


@dataclass(frozen=True)
class Prepared:
    """Everything is there. ``patience``: seconds that one step of the engine may take."""

    release: str
    size: int
    argv: tuple[str, ...]
    api: Address
    api_key: str | None
    start_timeout: float
    patience: float


@dataclass(frozen=True)
class Completed:
    """The head answered a completion."""


@dataclass(frozen=True)
class NotYet:
    """The head did not answer a completion."""

    detail: str


@dataclass(frozen=True)
class Sample:
    """One look at the serving engine. ``signs``: its counters, None when they can't be read.

    ``answered``: how a completion went, None when none was asked for. ``watts``: of the GPU.
    ``excused``: it is idle and must not be asked, but its counters can be read.
    """

    signs: str | None
    busy: bool
    answered: bool | None
    watts: float | None
    detail: str
    excused: bool = False


@dataclass(frozen=True)
class Quiet:
    """Seconds since the engine's last line in the journal; None when there is none to see."""

    seconds: float | None


@dataclass(frozen=True)
class Seen:
    """The model was looked at from inside the container. ``problem``: what is wrong, or ""."""

    problem: str


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
    """Time has passed. ``trouble``: why this worker isn't connected to the head."""

    trouble: str = ""


Event = (
    Wished | Step | Tidied | Missing | Prepared | Seen | Completed | NotYet | Sample | Quiet
    | Exited | StopAsked | Cleared | Tick | tether_events.Joined | tether_events.Heard
    | tether_events.Lost
)  # fmt: skip


def heard(word: dict[str, Any]) -> Event | None:
    """The event that a job's document tells of, if any."""
    match word:
        case {"step": str(detail)}:
            return Step(detail)
        case {"tidied": str(missing)}:
            return Tidied(missing)
        case {"unmet": str(detail), "release": str(release)}:
            return Missing(release, detail, bool(word.get("absent")))
        case {"start": list(argv), "api": [str(address), int(port), str(model)]}:
            return Prepared(
                release=word["release"],
                size=word["size"],
                argv=tuple(argv),
                api=(address, port, model),
                api_key=word["api_key"],
                start_timeout=float(word["start_timeout"]),
                patience=float(word["patience"]),
            )
        case {"seen": str(problem)}:
            return Seen(problem)
        case {"completed": True}:
            return Completed()
        case {"completed": False, "detail": str(detail)}:
            return NotYet(detail)
        case {"sample": dict(sample)}:
            return Sample(**sample)
        case {"quiet": seconds}:
            return Quiet(seconds)
        case {"cleared": str(detail)}:
            return Cleared(detail)
    return None
