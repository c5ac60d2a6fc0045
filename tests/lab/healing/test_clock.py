"""A clock that jumps by an hour while the gang serves: libfaketime, as a lab has but one clock."""

from __future__ import annotations

import time

import pytest

from ..stub.gang import UNIT, Gang
from .matrix import serving

pytestmark = pytest.mark.lab

_FOLDER = f"/etc/systemd/system/{UNIT}.service.d"
_OFFSET = "/run/clock-offset"
# The steady clock stays: setting a clock doesn't move that either.
_DROP_IN = (
    r"[Service]\nEnvironment=LD_PRELOAD=$(ls /usr/lib/*/faketime/libfaketime.so.1) "
    rf"FAKETIME_TIMESTAMP_FILE={_OFFSET} FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n"
)


@pytest.mark.parametrize("rank", [0, 2])
def test_clock_that_is_one_hour_off_restarts_nothing(gang: Gang, rank: int) -> None:
    _get_library(gang, rank)
    text, _ = serving(gang)
    gang.ask(rank, f'echo +0 > {_OFFSET} && printf "{_DROP_IN}" > {_FOLDER}/clock.conf')
    try:
        _restart(gang, rank)
        _, before = serving(gang)
        gang.ask(rank, f"echo +3600 > {_OFFSET}")
        time.sleep(15)  # three beats too late, and two looks of the probe
        assert gang.complete() == text
        assert gang.status()["start"] == before
        gang.kill_engine(1)
        gang.wait_serving(before, gang.start)
        ahead = gang.status(rank)["since"] - time.time()
        assert 3000 < ahead < 4000, f"the agent's clock is {ahead:.0f} s ahead"
        assert gang.complete() == text
        assert gang.status()["start"] == before + 1
    finally:
        gang.ask(rank, f"rm -f {_FOLDER}/clock.conf {_OFFSET}")
        _restart(gang, rank)
        serving(gang)


def _get_library(gang: Gang, rank: int) -> None:
    get = "apt-get update -qq && apt-get install -qq libfaketime >/dev/null"
    gang.ask(rank, f"ls /usr/lib/*/faketime >/dev/null 2>&1 || {{ {get}; }}")


def _restart(gang: Gang, rank: int) -> None:
    gang.ask(rank, f"systemctl daemon-reload && systemctl restart {UNIT}")
    time.sleep(1)
