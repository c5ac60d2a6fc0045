"""Who runs a deploy: asked once, however many hosts want to know."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyinfra_vllm import controller


def test_git_is_asked_once_for_all_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def git(*words: str) -> str:
        time.sleep(0.05)
        asked.append(words[0])
        return "" if words[0] == "status" else "abc"

    monkeypatch.setattr(controller, "_git", git)
    controller._about.cache_clear()
    try:
        with ThreadPoolExecutor(4) as pool:
            found = [job.result() for job in [pool.submit(controller.about) for _ in range(4)]]
    finally:
        controller._about.cache_clear()
    assert asked == ["rev-parse", "status"]
    assert all(
        one == {"who": controller.user(), "revision": "abc", "dirty": False} for one in found
    )
