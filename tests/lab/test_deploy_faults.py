"""The fault matrix with the real engine: six faults in every run, all of them under soak.

Uses what test_deploy.py has left serving, so that a run pays no start for that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .commands import pyinfra
from .conftest import Lab
from .healing.faults import FAULTS
from .healing.harmless import HARMLESS, withstand
from .healing.matrix import heal
from .stub.gang import Gang

pytestmark = pytest.mark.lab

_IN_EVERY_RUN = (
    "kill -9 of a worker's engine",
    "kill -9 of the head's engine",
    "kill -9 of the API server only",
    "kill -9 of the head's agent",
    "kill of a container",
    "power cut of a worker",
)


@pytest.fixture(scope="module")
def real(lab: Lab) -> Iterator[Gang]:
    """A gang with the real engine, at the pace of a real cluster."""
    done = pyinfra("-y", "--data", "recipe=tiny-cpu-4x", lab=lab.name)
    assert done.code == 0, done.text[-6000:]
    yield Gang(lab.layout, 1, start=300)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _IN_EVERY_RUN else pytest.mark.soak)
        for name in FAULTS
    ],
)
def test_gang_with_the_real_engine_heals_from(real: Gang, name: str) -> None:
    print(f"\n{heal(real, name)}")


@pytest.mark.soak
@pytest.mark.parametrize("name", HARMLESS)
def test_gang_with_the_real_engine_serves_on_without_a_restart(real: Gang, name: str) -> None:
    withstand(real, name)
