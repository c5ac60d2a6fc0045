"""What a run of the agent does about what happens to it. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from .events import Prepared
from .said import Start


@dataclass(frozen=True)
class Tidy:
    """Remove what an earlier start left, in ``delay`` seconds."""

    delay: float = 0.0


@dataclass(frozen=True)
class Prepare:
    """Look at the preconditions of ``release`` in ``delay`` seconds."""

    release: str
    delay: float = 0.0


@dataclass(frozen=True)
class Launch:
    """Start the engine."""

    prepared: Prepared
    start: Start


@dataclass(frozen=True)
class Ask:
    """Ask for a completion in ``delay`` seconds."""

    prepared: Prepared
    delay: float = 0.0


@dataclass(frozen=True)
class Watch:
    """Look for signs of life in ``delay`` seconds; ``press``: ask for a completion even if busy."""

    prepared: Prepared
    press: bool
    delay: float = 0.0


@dataclass(frozen=True)
class Clear:
    """Remove the gang's containers; ``gently``: let the engine end by itself first."""

    gently: bool


@dataclass(frozen=True)
class Leave:
    """End the agent."""

    code: int


@dataclass(frozen=True)
class Listen:
    """Look in ``delay`` seconds for how long the engine has written nothing."""

    delay: float = 0.0


Action = Tidy | Prepare | Launch | Ask | Watch | Listen | Clear | Leave
