"""The names that can be said with ``--data``, and those that are misspelt ones of ours. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyinfra_vllm.cluster import KEYS, PREFIX
from pyinfra_vllm.suggest import did_you_mean, nearest

WORDS = frozenset({
    "break_lock", "command", "dead", "endpoint", "gang", "images", "lease", "lock_wait", "rate",
    "recipe", "release", "stage_only", "stop_foreign", "trial_seconds", "verify", "why",
})  # fmt: skip
"""What our deploys read of host data beside :data:`.cluster.KEYS`."""

_ALIKE = 0.8
"""Stricter than elsewhere: other people's deploys have words of their own, ``version`` say."""


def misspelt(said: Iterable[str], inventory: Collection[str] = ()) -> list[str]:
    """A line for each name that was said, is none of ours and looks like one of ours.

    ``inventory``: names that the inventory itself has data for; these are meant.
    """
    known = {*WORDS, *KEYS}
    return [
        f"--data {name}: unknown; {did_you_mean(name, _like(name) or KEYS)}"
        for name in said
        if name not in known and name not in inventory and (name.startswith(PREFIX) or _like(name))
    ]


def _like(name: str) -> tuple[str, ...]:
    known = {*WORDS, *KEYS}
    swapped = [word for word in sorted(known) if sorted(word) == sorted(name)]
    return tuple(swapped[:1]) or nearest(name, known, cutoff=_ALIKE)
