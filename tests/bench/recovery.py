"""How long a gang takes to heal from each fault.

    python -m tests.bench.recovery LAB [stub|real] [PART OF A FAULT'S NAME]

Brings the lab up, unless it is up, and leaves it. Prints per fault the seconds from its end to
the first completion, the start of the engine in the same run, and the aim: that start and 5 s
where a death is visible at once; on top of it 30 s where it is silent, the limit of the probe
where the engine hangs, and the boot of a machine. With the stub engine all waits of the agents
are ten times shorter, and so is their part of the aim.
"""

from __future__ import annotations

import sys

from tests.lab.healing.faults import FAULTS
from tests.lab.healing.matrix import heal
from tests.lab.stub.gang import Gang

from pyinfra_vllm.lab import commands


def gang_on(name: str, engine: str) -> Gang:
    """The gang, deployed."""
    layout = commands.up(name)
    gang = Gang(layout, 0.1) if engine == "stub" else Gang(layout, 1, start=300)
    if engine == "stub":
        gang.set_pace()
    gang.deploy("stub-4x" if engine == "stub" else "tiny-cpu-4x")
    return gang


def main() -> None:
    name, engine, part = (*sys.argv[1:], *("", "stub", "")[len(sys.argv) - 1 :])
    if not name or engine not in ("stub", "real"):
        sys.exit(__doc__)
    gang = gang_on(name, engine)
    for fault in FAULTS:
        if part in fault:
            print(heal(gang, fault), flush=True)


if __name__ == "__main__":
    main()
