"""How starts of the gang ended, how switches went, and what the engine says now."""

from __future__ import annotations

from pyinfra_vllm.node.part import Model


class Ended(Model):
    """A start that ended. ``rank`` went first, with ``code`` and ``text``; ``ended``: when."""

    start: int
    release: str = ""
    ended: float = 0.0
    served: bool = False
    rank: int | None = None
    code: int | None = None
    text: str = ""


class Switch(Model):
    """A switch that came to serve: seconds of its engine's start, and ``without`` service."""

    at: float = 0.0
    release: str = ""
    engine: float | None = None
    without: float | None = None


class Past(Model):
    """``starts``: how many there were. ``broken``: not serving since a collapse (head only)."""

    starts: int = 0
    broken: bool = False
    on_trial: str = ""
    ended: tuple[Ended, ...] = ()
    switches: tuple[Switch, ...] = ()


class Metrics(Model):
    """Requests, KV usage from 0 to 1, tokens per second over the ``seconds`` of the look."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    prompt_rate: float | None = None
    generation_rate: float | None = None
    seconds: float = 0.0
