"""The faults that a gang must heal from, each with how long its end may go unseen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyinfra_vllm.agent import paths

from ..stub.gang import UNIT, Gang

LATE = 30.0
PROBE = 900.0 + 60.0 + 60.0
NOTICED = 5.0
"""Seconds (at pace 1) until a silent break is seen, a hang, and by vLLM a dead engine core."""


@dataclass(frozen=True)
class Fault:
    """``hurt`` returns at the end of the fault. ``unseen``: seconds at pace 1; ``boot``: on top."""

    hurt: Callable[[Gang], None]
    unseen: float = 0.0
    boot: float = 0.0
    starts: int = 1


def _agent(gang: Gang, rank: int, signal: str) -> None:
    gang.ask(rank, f"kill -{signal} {gang.main_pid(UNIT)}")


def _link_down(gang: Gang) -> None:
    seconds = 60 * gang.pace + 2
    # Late enough for the answer of this very command to come back over the link.
    gang.later(2, f"sleep 3; ip link set host0 down; sleep {seconds}; ip link set host0 up")
    time.sleep(3 + seconds)


def _tmp_emptied(gang: Gang) -> None:
    gang.ask(1, "rm -rf /tmp/*")
    gang.kill_engine(1)


def _disk_full(gang: Gang) -> None:
    root = "/var/lib/pyinfra-vllm"
    gang.ask(2, f"cp -a {root} /root/kept && mount -t tmpfs -o size=80m none {root}")
    gang.ask(2, f"cp -a /root/kept/. {root}/ && head -c 40000000 /dev/zero > {root}/fill")
    gang.kill_engine(2)
    _waits_for(gang, "is full")
    gang.ask(2, f"rm {root}/fill")


def _disk_mended(gang: Gang) -> None:
    gang.ask(2, "umount -l /var/lib/pyinfra-vllm && rm -rf /root/kept")


def _waits_for(gang: Gang, what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status = gang.status()
        if status.get("phase") == "waiting" and what in status["detail"]:
            return
        time.sleep(0.2)
    raise AssertionError(f"the head doesn't say {what!r}: {gang.status()}")


def _late_at_boot(gang: Gang) -> None:
    gang.power_cut(3)
    time.sleep(120 * gang.pace)
    gang.power_on()


def _nas_away_at_start(gang: Gang) -> None:
    gang.ask(1, "mkdir -p /mnt/kept && mount --bind /mnt/nas /mnt/kept && umount -l /mnt/nas")
    gang.kill_engine(1)
    _waits_for(gang, "/mnt/nas", 600 * gang.pace + 30)  # a back-off comes first
    gang.ask(1, "mount --bind /mnt/kept /mnt/nas && umount -l /mnt/kept")


def _two_faults(gang: Gang) -> None:
    gang.kill_engine(1)
    time.sleep(3)
    gang.look(3, f"pkill -KILL -f '^/usr/bin/python3 -I {paths.AGENT} run'")


def _powered(*ranks: int) -> Callable[[Gang], None]:
    def hurt(gang: Gang) -> None:
        gang.power_cut(*ranks)
        time.sleep(2)
        gang.power_on()

    return hurt


FAULTS: dict[str, Fault] = {
    "kill -9 of a worker's engine": Fault(lambda gang: gang.kill_engine(2)),
    "kill -9 of the head's engine": Fault(lambda gang: gang.kill_engine(0), unseen=NOTICED),
    "kill -9 of the API server only": Fault(lambda gang: gang.kill_command(0)),
    "kill -9 of a worker's agent": Fault(lambda gang: _agent(gang, 1, "KILL")),
    "kill -9 of the head's agent": Fault(lambda gang: _agent(gang, 0, "KILL")),
    "kill of a container": Fault(lambda gang: gang.look(3, "docker kill vllm-main") and None),
    "restart of dockerd": Fault(lambda gang: gang.ask(1, "systemctl restart docker") and None),
    "kill -9 of dockerd": Fault(
        lambda gang: gang.ask(2, "systemctl kill -s KILL docker") and None, boot=5
    ),
    "SIGSTOP of a rank": Fault(lambda gang: gang.kill_engine(3, "STOP"), unseen=PROBE),
    "SIGSTOP of an agent": Fault(lambda gang: _agent(gang, 2, "STOP"), unseen=LATE),
    "reboot of a worker": Fault(lambda gang: gang.reboot(1), boot=5),
    "reboot of the head": Fault(lambda gang: gang.reboot(0), boot=5),
    "reboot of all": Fault(lambda gang: gang.reboot(0, 1, 2, 3), boot=5),
    "power cut of a worker": Fault(_powered(2), unseen=LATE, boot=5),
    "power cut of the head": Fault(_powered(0), unseen=LATE, boot=5),
    "power cut of all": Fault(_powered(0, 1, 2, 3), boot=5),
    "fabric link down for 60 s": Fault(_link_down, unseen=LATE),
    "/tmp emptied, then a crash": Fault(_tmp_emptied),
    "disk full, then freed": Fault(_disk_full),
    "worker two minutes late at boot": Fault(_late_at_boot, boot=5),
    "NAS away at a start": Fault(_nas_away_at_start),
    "two faults within 10 s": Fault(_two_faults, starts=2),
}

MENDS: dict[str, Callable[[Gang], None]] = {"disk full, then freed": _disk_mended}
