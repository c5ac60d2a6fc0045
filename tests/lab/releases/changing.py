"""Recipes of the stub engine that differ in one thing, and what a gang serves now."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import paths

from ..stub.gang import HERE, UNIT, Gang

STUB = HERE / "recipes" / "stub-4x" / "recipe.toml"


def variant(folder: Path, name: str, original: Path = STUB, people: str = "", **env: str) -> str:
    """``--data recipe=…`` of another release; ``people``: its name for people alone."""
    lines = "".join(f'{key} = "{value}"\n' for key, value in env.items())
    text = original.read_text().replace("[env]\n", "[env]\n" + lines)
    if people:
        text = re.sub("^name = .*", f'name = "{people}"', text, flags=re.M)
    path = folder / name / "recipe.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return f"recipe={path}"


def served(gang: Gang) -> str:
    """The one release whose engines run on all nodes; fails when they are of several."""
    label = f"docker ps -q --no-trunc --filter label={paths.LABEL_GANG}=main"
    form = f'{{{{index .Config.Labels "{paths.LABEL_RELEASE}"}}}}'
    found = {gang.look(rank, f"docker inspect -f '{form}' $({label})") for rank in range(4)}
    assert len(found) == 1, found
    (release,) = found
    return release


def wanted(gang: Gang) -> dict[str, Any]:
    """What the head is to serve."""
    return dict(json.loads(gang.ask(0, f"cat {paths.wanted('main')}")))


def events(gang: Gang) -> list[dict[str, Any]]:
    """The head's history."""
    return [json.loads(line) for line in gang.ask(0, f"cat {paths.history('main')}").splitlines()]


def serving(gang: Gang, seconds: float = 90) -> str:
    """The release, once the gang serves what is wanted."""
    end = time.monotonic() + seconds
    while not _serves(gang, wanted(gang)["release"]):
        assert time.monotonic() < end, [gang.status(rank) for rank in range(4)]
        time.sleep(0.5)
    gang.complete()
    return served(gang)


def _serves(gang: Gang, release: str) -> bool:
    status = gang.status()
    return (status.get("phase"), status.get("release")) == ("serving", release)


def begin(gang: Gang) -> str:
    """The gang serves stub-4x, and earlier tests cost no back-off; its release."""
    unlock(gang)
    gang.each(f"systemctl start {UNIT}")
    gang.deploy("stub-4x")
    return serving(gang)


def unlock(gang: Gang) -> None:
    """A run that was killed would keep its lock for two minutes."""
    gang.ask(0, f"rm -f {paths.lock('main')}")
