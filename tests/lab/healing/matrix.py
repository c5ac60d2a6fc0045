"""One fault and what came of it: the same text, one new start, and the seconds it took."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..stub.gang import UNIT, Gang
from .faults import FAULTS, MENDS


@dataclass(frozen=True)
class Healed:
    """Seconds from the end of the fault to the first completion, and what may be aimed at.

    ``start``: of the engine, in the same run. ``aim``: that, 5 s, and as long as the fault
    may go unseen or the machine boots.
    """

    name: str
    seconds: float
    start: float
    aim: float

    def __str__(self) -> str:
        figures = f"{self.seconds:6.1f} s (start {self.start:5.1f} s, aim {self.aim:6.1f} s)"
        return f"{self.name:32} {figures}"


def serving(gang: Gang) -> tuple[str, int]:
    """Text and number of the start, once the gang serves as it should."""
    gang.each(f"systemctl start {UNIT}")
    status = gang.wait_serving(0, gang.start)
    gang.forget_starts()
    return gang.complete(), int(status["start"])


def heal(gang: Gang, name: str) -> Healed:
    """Hurt the gang and see it heal; AssertionError when it does not, or not as it should."""
    fault = FAULTS[name]
    text, before = serving(gang)
    try:
        fault.hurt(gang)
        began = time.time()
        status = gang.wait_serving(before, 2 * gang.start + 2 * fault.unseen * gang.pace)
        seconds = max(0.0, status["since"] - began)  # nodes of a lab have this machine's clock
        assert gang.complete() == text
        after = gang.status()["start"]
        assert before < after <= before + fault.starts, "more than one start"
        start = status["since"] - status["engine_started"]
        aim = start + 5 + fault.unseen * gang.pace + fault.boot
        return Healed(name, seconds, start, aim)
    finally:
        if name in MENDS:
            MENDS[name](gang)
