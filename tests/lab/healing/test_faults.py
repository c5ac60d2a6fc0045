"""The fault matrix with the stub engine: every fault ends in one new start and the same text."""

from __future__ import annotations

import time

import pytest

from ..stub.gang import UNIT, Gang
from .faults import FAULTS, MENDS

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("name", FAULTS)
def test_gang_heals_from(gang: Gang, name: str) -> None:
    fault = FAULTS[name]
    text, before = _serving(gang)
    fault.hurt(gang)
    began = time.monotonic()
    try:
        status = gang.wait_serving(before, 60 + (fault.unseen + 30) * gang.pace)
        seconds = time.monotonic() - began
        assert gang.complete() == text
        after = gang.status()["start"]
        assert before < after <= before + fault.starts, "more than one start"
        start = status["since"] - status["engine_started"]
        limit = start + 5 + fault.unseen * gang.pace + fault.boot
        print(f"\n{name:32} {seconds:5.1f} s (start {start:.1f} s, aim {limit:.1f} s)")
    finally:
        if name in MENDS:
            MENDS[name](gang)
    assert seconds <= 2 * limit + 5


def _serving(gang: Gang) -> tuple[str, int]:
    """Text and number of the start, once the gang serves as it should."""
    gang.each(f"systemctl start {UNIT}")
    status = gang.wait_serving(0, 60)
    gang.forget_starts()
    return gang.complete(), int(status["start"])


def test_nas_unmounted_while_serving_restarts_nothing(gang: Gang) -> None:
    text, before = _serving(gang)
    gang.ask(1, "mkdir -p /mnt/kept && mount --bind /mnt/nas /mnt/kept && umount -l /mnt/nas")
    try:
        time.sleep(5)
        assert gang.complete() == text
        assert gang.status()["start"] == before
    finally:
        gang.ask(1, "mount --bind /mnt/kept /mnt/nas && umount -l /mnt/kept")


def test_prefill_longer_than_three_probe_intervals_restarts_nothing(gang: Gang) -> None:
    text, before = _serving(gang)
    gang.complete("prefill 25", 60)
    assert gang.complete() == text
    assert gang.status()["start"] == before
