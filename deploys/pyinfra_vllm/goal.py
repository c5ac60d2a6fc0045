"""What a deploy waits for: a release of a gang, as far as its launch.json tells. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.launch import Api, parse
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import Order

_KEY = "VLLM_API_KEY"


@dataclass(frozen=True)
class Goal:
    """``nodes``: in the order of their ranks. ``seconds``: allowed to the first completion."""

    gang: str
    release: str
    recipe: str
    nodes: tuple[str, ...]
    api: Api
    seconds: int
    needs_key: bool
    image: Mapping[str, Any]
    """``tag``, and ``build`` or None."""

    def order(self, kind: str, by: Mapping[str, Any], lease: int | None = None) -> Order:
        """How it is asked for. ``kind``: which deploy asks; ``by``: who runs it."""
        about = {"kind": kind, "by": dict(by), "recipe": self.recipe, "image": dict(self.image)}
        return Order(self.seconds, about, lease)


def of_release(release: Release, seconds: int | None = None) -> Goal:
    """``seconds``: instead of the recipe's own limit."""
    gang = release.content.gang
    nodes = tuple(node.name for node in gang.nodes)
    return of_launch(release.files(gang.head)["launch.json"], nodes, seconds)


def of_launch(text: str, nodes: tuple[str, ...], seconds: int | None = None) -> Goal:
    """From the head's ``launch.json``. Unmet says what is wrong with it."""
    launch = parse(Document("launch.json", json.loads(text)))
    return Goal(
        gang=launch.gang,
        release=launch.release,
        recipe=launch.recipe,
        nodes=nodes[: launch.size],
        api=launch.api,
        seconds=seconds or launch.start_timeout,
        needs_key=_KEY in launch.secrets,
        image={"tag": launch.tag, "build": launch.build},
    )
