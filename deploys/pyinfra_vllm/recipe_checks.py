"""What can't be true together in one recipe: pairs of (key path, what is wrong)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyinfra_vllm import flags
from pyinfra_vllm.validation import got

if TYPE_CHECKING:
    from pyinfra_vllm.recipe import ComposedModel, Recipe

Problem = tuple[str, str]

_SAID_TWICE = {
    "--tensor-parallel-size": "tensor_parallel_size",
    "--pipeline-parallel-size": "pipeline_parallel_size",
    "--distributed-executor-backend": "distributed_backend",
}
"""Flags that are keys too: said twice and equal is fine."""

_ONLY_ONE = ("--data-parallel-size", "--prefill-context-parallel-size")
"""Flags that multiply the number of GPUs, which is tensor times pipeline here."""

_API_SERVER = "vllm.entrypoints.openai.api_server"


def problems(recipe: Recipe) -> list[Problem]:
    """Everything in ``recipe`` that contradicts something else in it."""
    found = [*_image(recipe), *_sizes(recipe), *_entrypoint(recipe), *_args(recipe)]
    found += _secrets(recipe)
    if recipe.composed_model is not None:
        found += _composed(recipe.composed_model)
        found += _first_rows(recipe.composed_model, recipe.tensor_parallel_size)
    return found


def _image(recipe: Recipe) -> Iterator[Problem]:
    if recipe.build_profile is not None and recipe.docker_image_dir is None:
        yield (
            "build_profile",
            "a profile needs docker_image_dir, the folder of templates/images that has it",
        )


def _sizes(recipe: Recipe) -> Iterator[Problem]:
    tensor, pipeline = recipe.tensor_parallel_size, recipe.pipeline_parallel_size
    if tensor * pipeline != recipe.required_nodes:
        yield (
            "required_nodes",
            f"{recipe.required_nodes} nodes have {recipe.required_nodes} GPUs, but "
            f"tensor_parallel_size {tensor} x pipeline_parallel_size {pipeline} "
            f"takes {tensor * pipeline}",
        )


def _entrypoint(recipe: Recipe) -> Iterator[Problem]:
    if not recipe.entrypoint:
        yield "entrypoint", 'expected at least one word, such as ["vllm", "serve"]'
    if recipe.required_nodes > 1 and _API_SERVER in recipe.entrypoint:
        yield (
            "entrypoint",
            f'{_API_SERVER} ignores --headless, so no rank but 0 works; write ["vllm", "serve"]',
        )


def _args(recipe: Recipe) -> Iterator[Problem]:
    args = recipe.args
    if args and not flags.is_flag(args[0]):
        yield "args[0]", f"expected a flag, got {got(args[0])}; the checkpoint is the key model"
    for flag, key in _SAID_TWICE.items():
        yield from _twice(recipe, flag, key)
    for flag in _ONLY_ONE:
        for one in flags.all_of(args, flag):
            if one.values != ("1",):
                yield f"args[{one.index}]", f"{flag}{_value(one)} isn't supported; leave it out"
    for one in flags.all_of(args, "--port"):
        if len(one.values) != 1 or not _is_port(one.values[0]):
            given = " ".join(one.values) or "nothing"
            yield f"args[{one.place(0)}]", f"--port expects a port from 1 to 65535, got {given}"


def _secrets(recipe: Recipe) -> Iterator[Problem]:
    for index, name in enumerate(recipe.secrets):
        if name in recipe.env:
            yield f"secrets[{index}]", f"{name} is in [env] too; leave it out there"
        if name in recipe.secrets[:index]:
            yield f"secrets[{index}]", f"{name} is there twice"


def _twice(recipe: Recipe, flag: str, key: str) -> Iterator[Problem]:
    wanted = getattr(recipe, key)
    for one in flags.all_of(recipe.args, flag):
        if one.values != (str(wanted),):
            written = f'"{wanted}"' if isinstance(wanted, str) else wanted
            yield (
                f"args[{one.index}]",
                f"{flag}{_value(one)} contradicts {key} = {written}; leave it out of args",
            )


def _value(one: flags.Said) -> str:
    return "".join(f" {value}" for value in one.values) or " without a value"


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= 65535


def _composed(composed: ComposedModel) -> Iterator[Problem]:
    if not composed.sources:
        yield "composed_model.sources", "expected at least one source, got none"
    repos: dict[str, int] = {}
    for index, source in enumerate(composed.sources):
        first = repos.setdefault(source.repo, index)
        if first != index:
            path = f"composed_model.sources[{index}].repo"
            yield path, f"{source.repo} is already sources[{first}]"
    names: dict[str, int] = {}
    for index, local in enumerate(composed.local_files):
        name = posixpath.basename(local.host)
        first = names.setdefault(name, index)
        if first != index:
            path = f"composed_model.local_files[{index}].host"
            yield path, f"the name {name} is already taken by local_files[{first}]"


def _first_rows(composed: ComposedModel, size: int) -> Iterator[Problem]:
    for layer, rows in composed.engram_first_rows.items():
        if len(rows) != size or rows[0] != 0 or list(rows) != sorted(rows):
            yield (
                f"composed_model.engram_first_rows.{layer}",
                f"expected {size} growing numbers from 0 on, the first row of each rank "
                f"(tensor_parallel_size = {size}), got {list(rows)}",
            )
