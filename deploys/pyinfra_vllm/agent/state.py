"""The state of one run of the agent. A value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .actions import Action
from .events import (
    NO_WISH,
    Hold,
    Moment,
    Prepared,
    Wished,
)
from .status import Failure, Phase
from .tether import Tether
from .vitals import Vitals

CODE_TIMEOUT = 124
"""Code of a failure where no engine exited, as timeout(1) has it."""
CODE_DOCKER = 125
"""Exit code of docker's client when docker, not the engine, failed."""


@dataclass(frozen=True)
class State:
    """Everything that decides what comes next. ``names``: of the nodes, by rank, for people.

    ``wished``: the head's wish. ``talked_at``: steady seconds of the engine's last line.
    ``seen``: the model, from inside the container; ``answered``: a first completion.
    """

    phase: Phase
    since: float
    tether: Tether
    names: tuple[str, ...]
    detail: str = ""
    doing: str = ""
    hold: Hold | None = None
    prepared: Prepared | None = None
    engine_started: Moment | None = None
    seen: bool = False
    answered: bool = False
    last_failure: Failure | None = None
    stop_asked: bool = False
    trouble: str = ""
    vitals: Vitals | None = None
    wished: Wished = NO_WISH
    talked_at: float | None = None

    @property
    def release(self) -> str | None:
        """The release that this rank is to serve, when it knows."""
        return self.tether.wanted or None

    def to(self, phase: Phase, detail: str, now: Moment) -> State:
        """This state in another phase; ``since`` moves only with the phase."""
        since = self.since if phase == self.phase else now.wall
        return replace(self, phase=phase, since=since, detail=detail)


Next = tuple[State, tuple[Action, ...]]
