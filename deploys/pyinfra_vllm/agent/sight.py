"""What a trial and the history see of the head's state. Pure."""

from __future__ import annotations

from typing import Any

from .events import Moment
from .said import ABSENT, HEAD
from .state import State
from .trial import Seen
from .wish import Wish


def seen(state: State, unheard: float, now: Moment) -> Seen:
    """What a trial is judged by, beside its time."""
    is_starting = state.tether.stage == "running" and state.talked_at is not None
    quiet = now.steady - (state.talked_at or 0.0) if is_starting else None
    return Seen(_absent(state), quiet, unheard)


def _absent(state: State) -> str:
    now = state.tether
    if now.absent:
        return f"{state.names[HEAD]}: {now.lacks}"
    if not now.ready:
        return ""  # how many ranks the release has is not known yet
    for rank in range(1, now.size):
        said = now.heard[rank]
        if said and said.word == "lack" and said.code == ABSENT and said.release == now.wanted:
            return f"{state.names[rank]}: {said.text}"
    return ""


def all_connected(state: State) -> bool:
    """Whether the head hears every other rank of the release."""
    now = state.tether
    return now.stage in ("assembling", "running") and None not in now.heard[1 : now.size]


def has_exited(state: State) -> bool:
    """Whether an engine's own exit ended a start that had not answered a completion."""
    end = state.tether.end
    return end is not None and end.code is not None and not state.tether.served


def asked(wish: Wish) -> dict[str, Any]:
    """What the history keeps of a wish."""
    known = {key: wish.whole.get(key) for key in ("kind", "by", "recipe", "image", "previous")}
    back = wish.whole.get("back")
    return {**known, "why": back.get("why")} if isinstance(back, dict) else known
