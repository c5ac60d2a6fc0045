"""A secret that changes starts every rank of a gang anew, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .stub.gang import HERE, Gang

pytestmark = pytest.mark.lab

KEY = "VLLM_API_KEY"
STARTED = "docker inspect -f '{{.State.StartedAt}}' vllm-main"


@pytest.fixture
def recipe(gang: Gang, tmp_path: Path) -> Iterator[str]:
    """The recipe of the stub engine, with an API key; the gang serves without one in the end."""
    text = (HERE / "recipes" / "stub-4x" / "recipe.toml").read_text()
    folder = tmp_path / "stub-secret"
    folder.mkdir()
    (folder / "recipe.toml").write_text(f'secrets = ["{KEY}"]\n{text}')
    yield str(folder)
    gang.deploy("stub-4x")


def containers(gang: Gang) -> list[str]:
    """When the container of each rank was started."""
    return [gang.ask(rank, STARTED) for rank in range(4)]


def test_changed_secret_starts_all_ranks_anew_exactly_once(
    gang: Gang, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "first-7e57")
    gang.deploy(recipe)
    first, before = int(gang.wait_serving(0, 60)["start"]), containers(gang)
    monkeypatch.setenv(KEY, "second-7e57")
    told = gang.deploy(recipe)
    second = int(gang.wait_serving(first, 60)["start"])
    after = containers(gang)
    assert second == first + 1
    assert all(new != old for new, old in zip(after, before, strict=True))
    gang.deploy(recipe)
    # A deploy compares what each engine got with what it is to have: all have the new one.
    assert containers(gang) == after and gang.status()["start"] == second
    assert "7e57" not in told
