"""A gang with the stub engine on a lab of its own, with waits ten times shorter."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pyinfra_vllm.lab import commands, machine, state

from ..conftest import bring_up, require_root
from .gang import UNIT, Gang

NAME = os.environ.get("PYINFRA_VLLM_HEALING_LAB", "heal")


@pytest.fixture(scope="package")
def gang() -> Iterator[Gang]:
    require_root()
    found = state.load(NAME)
    was_running = found is not None and all(machine.is_on(found, node) for node in found.machines)
    gang = Gang(bring_up(NAME), 0.1)
    gang.set_pace()
    gang.deploy("stub-4x")
    yield gang
    if was_running:
        gang.each(f"systemctl stop {UNIT}")
    else:
        commands.down(NAME)
