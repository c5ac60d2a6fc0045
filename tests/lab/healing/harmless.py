"""What a serving gang must not even notice: no start is lost, and the text stays the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ..stub.gang import UNIT, Gang
from .matrix import serving

_DROP_INS = f"/etc/systemd/system/{UNIT}.service.d"
_OFFSET = "/run/clock-offset"
# The steady clock stays: setting a clock doesn't move that either.
_CLOCK = (
    r"[Service]\nEnvironment=LD_PRELOAD=$(ls /usr/lib/*/faketime/libfaketime.so.1) "
    rf"FAKETIME_TIMESTAMP_FILE={_OFFSET} FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n"
)


@contextmanager
def _nas_unmounted(gang: Gang) -> Iterator[None]:
    gang.ask(1, "mkdir -p /mnt/kept && mount --bind /mnt/nas /mnt/kept && umount -l /mnt/nas")
    try:
        yield
    finally:
        gang.ask(1, "mount --bind /mnt/kept /mnt/nas && umount -l /mnt/kept")


def _clock_ahead(rank: int) -> Callable[[Gang], AbstractContextManager[None]]:
    """An agent's clock that jumps by an hour: libfaketime, as the machines of a lab share one."""

    @contextmanager
    def harm(gang: Gang) -> Iterator[None]:
        get = "apt-get update -qq && apt-get install -qq libfaketime >/dev/null"
        gang.ask(rank, f"ls /usr/lib/*/faketime >/dev/null 2>&1 || {{ {get}; }}")
        drop_in = f"{_DROP_INS}/clock.conf"
        gang.ask(rank, f"echo +0 > {_OFFSET} && mkdir -p {_DROP_INS}")
        gang.ask(rank, f'printf "{_CLOCK}" > {drop_in}')
        try:
            _restart(gang, rank)
            gang.ask(rank, f"echo +3600 > {_OFFSET}")
            yield
            _check_clock(gang, rank)
        finally:
            gang.ask(rank, f"rm -f {drop_in} {_OFFSET}")
            _restart(gang, rank)

    return harm


def _restart(gang: Gang, rank: int) -> None:
    before = gang.status()["start"]
    gang.ask(rank, f"systemctl daemon-reload && systemctl restart {UNIT}")
    gang.wait_serving(before, gang.start)


def _check_clock(gang: Gang, rank: int) -> None:
    """What the agent writes down is an hour ahead, and another fault is healed as ever."""
    before = gang.status()["start"]
    gang.kill_engine(1)
    gang.wait_serving(before, gang.start)
    ahead = gang.status(rank)["since"] - time.time()
    assert 3000 < ahead < 4000, f"the agent's clock is {ahead:.0f} s ahead"


HARMLESS: dict[str, Callable[[Gang], AbstractContextManager[None]]] = {
    "NAS unmounted while serving": _nas_unmounted,
    "clock of the head one hour off": _clock_ahead(0),
    "clock of a worker one hour off": _clock_ahead(2),
}


def withstand(gang: Gang, name: str) -> None:
    """Harm the gang, and see it serve on; AssertionError when a start is lost."""
    text, _ = serving(gang)
    with HARMLESS[name](gang):
        before = gang.status()["start"]
        time.sleep(130 * gang.pace)  # four late beats, and two looks of the probe
        assert gang.complete() == text
        assert gang.status()["start"] == before
    assert gang.complete() == text
