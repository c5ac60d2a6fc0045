"""What happens to a rank's tether (events) and what it does about it (actions). Values only."""

from __future__ import annotations

from dataclasses import dataclass

from .said import Said, Start


@dataclass(frozen=True)
class Clean:
    """No engine of the gang is left on this node."""


@dataclass(frozen=True)
class Wish:
    """Head: the release to serve ("" when there is none), and what forbids a start, if anything.

    ``why``: what people must know of it.
    """

    release: str
    hold: str = ""
    why: str = ""


@dataclass(frozen=True)
class Ready:
    """The preconditions of a release hold on this node; the release has ``size`` ranks."""

    release: str
    size: int


@dataclass(frozen=True)
class Lacking:
    """A precondition of a release is missing on this node; ``absent``: a part of the release."""

    release: str
    text: str
    absent: bool = False


@dataclass(frozen=True)
class Joined:
    """A connection stands, and the other end has proven who it is."""

    rank: int


@dataclass(frozen=True)
class Heard:
    rank: int
    said: Said


@dataclass(frozen=True)
class Lost:
    """The connection broke, or its beat is late."""

    rank: int
    text: str


@dataclass(frozen=True)
class Served:
    """Head: the engine has answered a completion."""


@dataclass(frozen=True)
class Over:
    """This rank can't go on. ``code``: the exit code of its engine, None when that runs."""

    code: int | None
    text: str


Event = Clean | Wish | Ready | Lacking | Joined | Heard | Lost | Served | Over


@dataclass(frozen=True)
class Prepare:
    """Look at the preconditions of ``release``."""

    release: str


@dataclass(frozen=True)
class Run:
    """Start the engine of ``release``."""

    release: str
    start: Start


Action = Prepare | Run
