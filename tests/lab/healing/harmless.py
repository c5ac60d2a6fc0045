"""What a serving gang must not even notice: no start is lost, and the text stays the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ..stub.gang import UNIT, Gang
from .matrix import serving

_DROP_INS = f"/etc/systemd/system/{UNIT}.service.d"
_OFFSET = "/run/clock-offset"
_CLOCK = f"""
import time
true, local, universal = time.time, time.localtime, time.gmtime
time.time = lambda: true() + float(open({_OFFSET!r}).read())
time.localtime = lambda at=None: local(time.time() if at is None else at)
time.gmtime = lambda at=None: universal(time.time() if at is None else at)
"""
_HOOK = "/usr/lib/python3/dist-packages/lab-clock.pth"
_SETUP = f"""
echo +0 > {_OFFSET} && cat > /run/clock.py && mkdir -p {_DROP_INS}
echo 'import os; exec(open(os.environ.get("LAB_CLOCK", os.devnull)).read(), {{}})' > {_HOOK}
printf '[Service]\\nEnvironment=LAB_CLOCK=/run/clock.py\\n' > {_DROP_INS}/clock.conf
"""


@contextmanager
def _nas_unmounted(gang: Gang) -> Iterator[None]:
    gang.ask(1, "mkdir -p /mnt/kept && mount --bind /mnt/nas /mnt/kept && umount -l /mnt/nas")
    try:
        yield
    finally:
        gang.ask(1, "mount --bind /mnt/kept /mnt/nas && umount -l /mnt/kept")


def _clock_ahead(rank: int) -> Callable[[Gang], AbstractContextManager[None]]:
    """The clock of an agent jumps by an hour.

    The machines of a lab share one clock, so what is changed is the agent's view of it: Python's
    wall clock, on its node. The steady clock stays, as it does when a clock is set. (libfaketime
    0.9.10 can't do that: with the steady clock left alone, every sleep of Python 3.11 fails.)
    """

    @contextmanager
    def harm(gang: Gang) -> Iterator[None]:
        gang.ask(rank, _SETUP, _CLOCK)
        try:
            _restart(gang, rank)
            gang.ask(rank, f"echo +3600 > {_OFFSET}")
            yield
            _check_clock(gang, rank)
        finally:
            gang.ask(rank, f"rm -f {_DROP_INS}/clock.conf {_HOOK} {_OFFSET} /run/clock.py")
            _restart(gang, rank)

    return harm


def _restart(gang: Gang, rank: int) -> None:
    before = gang.status()["start"] or 0
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
