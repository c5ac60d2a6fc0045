"""The fault matrix with the stub engine: every fault ends in one new start and the same text."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..stub.gang import Gang
from .faults import FAULTS
from .harmless import HARMLESS, withstand
from .matrix import heal, serving

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("name", FAULTS)
def test_gang_heals_from(gang: Gang, name: str) -> None:
    print(f"\n{heal(gang, name)}")


@pytest.mark.parametrize("name", HARMLESS)
def test_gang_serves_on_without_a_restart(gang: Gang, name: str) -> None:
    withstand(gang, name)


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(25, id="longer than three probe intervals"),
        pytest.param(150, id="longer than the patience", marks=pytest.mark.soak),
    ],
)
def test_prefill_restarts_nothing(gang: Gang, seconds: int) -> None:
    text, before = serving(gang)
    first = gang.metrics()
    with ThreadPoolExecutor() as pool:
        prefill = pool.submit(gang.complete, f"prefill {seconds}", seconds + 35)
        time.sleep(seconds - 5)
        during = gang.metrics()
        prefill.result()
    moved = {name for name, value in during.items() if value != first[name]}
    print(f"\nduring the prefill these move: {', '.join(sorted(moved))}")
    assert moved == {"vllm:kv_cache_usage_perc", "vllm:num_requests_running"}
    assert gang.complete() == text
    assert gang.status()["start"] == before
