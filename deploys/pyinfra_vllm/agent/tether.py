"""The protocol that joins the ranks of a gang in one start. Pure: no socket, no process, no clock.

Rank 0 is the head. A rank lives once: *clearing* (an engine of an earlier start may
still be there) → *assembling* → *running* → *ending*; systemd then starts its agent
anew. So a life has at most one start, and an engine of start N+1 can't run beside one
of start N: the head opens a start only when all ranks are connected and have the
release, and a worker connects only when its old engine is gone.

Both ends say all that they are, again with every beat (:class:`~.said.Said`): a message that
is lost is made good by the next one, and one that comes twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .said import ABSENT, HEAD, End, Said, Stage, Start
from .tether_events import (
    Action,
    Clean,
    Event,
    Heard,
    Joined,
    Lacking,
    Lost,
    Over,
    Prepare,
    Ready,
    Run,
    Served,
    Wish,
)


@dataclass(frozen=True)
class Tether:
    """One rank. ``heard``: what the other end of each connection said last, by rank."""

    rank: int
    heard: tuple[Said | None, ...]
    start: Start | None = None
    stage: Stage = "clearing"
    size: int = 0
    wanted: str = ""
    hold: str = ""
    ready: bool = False
    lacks: str = ""
    absent: bool = False
    served: bool = False
    end: End | None = None

    @property
    def is_head(self) -> bool:
        return self.rank == HEAD


def head(members: int, start: Start) -> Tether:
    """The first state of the head of ``members`` nodes; ``start`` is what it would open."""
    return Tether(HEAD, (None,) * members, start, size=members)


def worker(rank: int) -> Tether:
    """The first state of another rank."""
    return Tether(rank, (None,))


Next = tuple[Tether, tuple[Action, ...]]


def step(now: Tether, event: Event) -> Next:
    """What follows from ``event``. An ending rank hears nothing any more."""
    if now.stage == "ending":
        return now, ()
    match event:
        case Over(code, text):
            return _ends(now, now.rank, code, text)
        case Clean() if now.stage == "clearing":
            return replace(now, stage="assembling"), _look(now.wanted)
        case Wish(release, hold, why):
            return _wished(now, release, hold, why)
        case Ready(release, size) if _is_awaited(now, release):
            now = replace(now, ready=True, lacks="", absent=False)
            if now.is_head:
                return _open(replace(now, size=size))
            return _heard_head(now, now.heard[HEAD] or Said("hold", now.wanted))
        case Lacking(release, text, absent) if _is_awaited(now, release):
            return replace(now, ready=False, lacks=text, absent=absent), ()
        case Joined(rank):
            return _heard(now, rank, Said("here"))
        case Heard(rank, said):
            return _heard(now, rank, said)
        case Lost(rank, text):
            return _lost(now, rank, text)
        case Served() if now.stage == "running":
            return replace(now, served=True), ()
    return now, ()


def _is_awaited(now: Tether, release: str) -> bool:
    return release == now.wanted and now.stage == "assembling"


def _look(release: str) -> tuple[Action, ...]:
    return (Prepare(release),) if release else ()


def _ends(now: Tether, rank: int, code: int | None, text: str) -> Next:
    return replace(now, stage="ending", end=End(rank, code, text)), ()


def _wished(now: Tether, release: str, hold: str, why: str) -> Next:
    if now.stage == "running":
        if release != now.wanted:
            text = f"switch to {release[:12] or 'nothing'}"
            return _ends(now, now.rank, None, f"{text}: {why}" if why else text)
        return _ends(now, now.rank, None, hold) if hold else (now, ())
    changed = release != now.wanted
    now = replace(now, wanted=release, hold=hold)
    if not changed:
        return _open(now)
    now = replace(now, ready=False, lacks="", absent=False)
    return now, _look(release) if now.stage == "assembling" else ()


def _open(now: Tether) -> Next:
    """Head: open the start when nothing is missing."""
    if not now.is_head or now.stage != "assembling" or now.hold or not now.ready:
        return now, ()
    if any(not _has(said, now.wanted) for said in now.heard[1 : now.size]):
        return now, ()
    assert now.start is not None
    return replace(now, stage="running"), (Run(now.wanted, now.start),)


def _has(said: Said | None, release: str) -> bool:
    return said is not None and said.word == "have" and said.release == release


def _heard(now: Tether, rank: int, said: Said) -> Next:
    before = now.heard[rank]
    now = replace(now, heard=(*now.heard[:rank], said, *now.heard[rank + 1 :]))
    return _heard_worker(now, rank, before, said) if now.is_head else _heard_head(now, said)


def _heard_worker(now: Tether, rank: int, before: Said | None, said: Said) -> Next:
    if now.stage != "running":
        return _open(now)
    if rank >= now.size:
        return now, ()
    if said.word == "run" and said.start == now.start:
        return now, ()
    if _has(said, now.wanted) and _has(before, now.wanted):
        return now, ()
    if said.word == "end":
        return _ends(now, rank, said.code if said.start else None, said.text)
    return _ends(now, rank, None, f"it is not in this start any more: {said.text or said.word}")


def _heard_head(now: Tether, said: Said) -> Next:
    if now.stage == "running":
        return _heard_in_start(now, said)
    if said.word in ("open", "serve"):
        if now.stage == "assembling" and now.ready and said.release == now.wanted and said.start:
            now = replace(now, stage="running", start=said.start, served=said.word == "serve")
            return now, (Run(now.wanted, said.start),)
        return now, ()
    if said.word == "end" or said.release == now.wanted:
        return now, ()
    now = replace(now, wanted=said.release, ready=False, lacks="", absent=False)
    return now, _look(said.release) if now.stage == "assembling" else ()


def _heard_in_start(now: Tether, said: Said) -> Next:
    if said.word in ("open", "serve") and said.start == now.start:
        return replace(now, served=said.word == "serve"), ()
    if said.word == "end":
        # What the head says of this very rank is news from the head: here the engine runs.
        first = HEAD if said.first is None or said.first == now.rank else said.first
        return _ends(now, first, said.code if said.start else None, said.text)
    return _ends(now, HEAD, None, "the head is not in this start any more")


def _lost(now: Tether, rank: int, text: str) -> Next:
    if now.stage == "running" and (rank < now.size or not now.is_head):
        return _ends(now, rank, None, text)
    heard = (*now.heard[:rank], None, *now.heard[rank + 1 :])
    now = replace(now, heard=heard)
    if now.is_head:
        return now, ()
    return replace(now, wanted="", ready=False, lacks="", absent=False), ()


def says(now: Tether, rank: int) -> Said:
    """What this rank says to ``rank``, in every beat."""
    if now.end is not None:
        start = now.start if now.end.code is not None else None
        return Said("end", now.wanted, start, now.end.code or 0, now.end.text, now.end.rank)
    if not now.is_head:
        return _worker_says(now)
    if now.stage == "running" and rank < now.size:
        return Said("serve" if now.served else "open", now.wanted, now.start)
    if rank >= now.size:
        return Said("hold", text=f"the release has {now.size} ranks, this one is not needed")
    if now.hold or not now.wanted:
        return Said("hold", now.wanted, text=now.hold)
    return Said("want", now.wanted)


def _worker_says(now: Tether) -> Said:
    if now.stage == "running":
        return Said("run", now.wanted, now.start)
    if now.ready:
        return Said("have", now.wanted)
    if not now.lacks:
        return Said("here")
    return Said("lack", now.wanted, code=ABSENT if now.absent else 0, text=now.lacks)
