"""Recipe files for the tests: a good one with some keys changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.recipe import load

WHERE = "recipes/x/recipe.toml"

TOP = {
    "engine": '"vllm"',
    "name": '"A name"',
    "docker_image": '"image:tag"',
    "model": '"org/name"',
    "required_nodes": "2",
    "tensor_parallel_size": "2",
}

Write = Callable[..., Path]


def writer(root: Path) -> Write:
    """Writes the recipe below ``root``: keys changed (None: left out), text at its end."""

    def write(tail: str = "", **changes: str | None) -> Path:
        keys = {**TOP, **changes}
        path = root / WHERE
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
        path.write_text("\n".join([*lines, tail]), encoding="utf-8")
        return path

    return write


def message(path: Path) -> str:
    """What loading ``path`` says is wrong."""
    with pytest.raises(UserError) as caught:
        load(path)
    return str(caught.value)
