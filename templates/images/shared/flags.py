"""Ask this image's own ``vllm serve`` which flags it has, and print them as JSON.

Runs as a step of the image's build; the answer stays in the image, where a deploy reads it.
A flag has its names, the least and most words that follow it, and what is known of a value:
``choices``, and ``kind`` (``int``, ``float`` or ``json``) where the parser reads it as that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

SCHEMA = 1
_MANY = 1_000_000_000
_WORDS = {"?": (0, 1), "*": (0, _MANY), "+": (1, _MANY), None: (1, 1)}
_REGISTRIES = {
    "--tool-call-parser": (
        ("vllm.tool_parsers", "ToolParserManager", "list_registered"),
        ("vllm.entrypoints.openai.tool_parsers", "ToolParserManager", "list_registered"),
    ),
    "--reasoning-parser": (("vllm.reasoning", "ReasoningParserManager", "list_registered"),),
    "--load-format": (
        ("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER", "keys"),
    ),
}
"""Flags whose values are names that the engine looks up later, and where it looks."""


def main() -> int:
    with contextlib.redirect_stdout(sys.stderr):
        flags = [_flag(action) for action in _serve()._actions if action.option_strings]
    flags.sort(key=lambda flag: str(flag["names"]))
    document = {"schema": SCHEMA, "vllm": metadata.version("vllm"), "flags": flags}
    json.dump(document, sys.stdout, separators=(",", ":"))
    print()
    return 0


def _serve() -> argparse.ArgumentParser:
    """The parser of ``vllm serve``, made as the command itself makes it."""
    serve = importlib.import_module("vllm.entrypoints.cli.serve")
    utils = importlib.import_module("vllm.utils.argparse_utils")
    subparsers = utils.FlexibleArgumentParser().add_subparsers()
    parser: argparse.ArgumentParser = serve.cmd_init()[0].subparser_init(subparsers)
    return parser


def _flag(action: argparse.Action) -> dict[str, Any]:
    least, most = _words(action)
    flag: dict[str, Any] = {"names": list(action.option_strings), "least": least, "most": most}
    choices = _choices(action)
    if choices:
        flag["choices"] = choices
    kind = _kind(action)
    if kind:
        flag["kind"] = kind
    return flag


def _words(action: argparse.Action) -> tuple[int, int]:
    if isinstance(action.nargs, int):
        return action.nargs, action.nargs
    return _WORDS.get(action.nargs, (0, _MANY))


def _choices(action: argparse.Action) -> list[str]:
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return next(_registered(action.option_strings), [])


def _registered(names: list[str]) -> Iterator[list[str]]:
    for name in names:
        for module, registry, method in _REGISTRIES.get(name, ()):
            # Other versions of vLLM keep them elsewhere; a value is then left unchecked.
            with contextlib.suppress(Exception):
                found = getattr(importlib.import_module(module), registry)
                yield sorted(str(one) for one in getattr(found, method)())


def _kind(action: argparse.Action) -> str | None:
    """What a value must be. The reader of the flag is tried: its name says too little."""
    if action.type is None or _reads(action, "text"):
        return None
    if _reads(action, "{}") or "dataclass" in getattr(action.type, "__qualname__", ""):
        return "json"
    if not _reads(action, "1") or _reads(action, "1k"):
        return None
    return "float" if _reads(action, "0.5") else "int"


def _reads(action: argparse.Action, value: str) -> bool:
    try:
        action.type(value)  # type: ignore[operator,misc]
    except Exception:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
