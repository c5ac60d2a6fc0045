"""Script for the inside of an image: let its own ``vllm serve`` read command lines.

It is sent on standard input with a JSON document in place of ``COMMANDS`` (lists of the words
that follow ``serve``). Exit code 0: all can be read; 2: one can't, with the reason as the last
line; anything else: this vLLM can't be asked in this way. Lines that begin with ``unchecked:``
name values that this vLLM has no list of.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from typing import Any

COMMANDS: list[list[str]] = []
REFUSED, UNABLE = 2, 3

# vLLM looks at these names only when its server or its model loader starts.
PARSERS = {
    "tool_call_parser": (
        ("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers"), "ToolParserManager",
    ),
    "reasoning_parser": (("vllm.reasoning",), "ReasoningParserManager"),
}  # fmt: skip
PLUGINS = {"tool_call_parser": "tool_parser_plugin", "reasoning_parser": "reasoning_parser_plugin"}
LOADERS = "vllm.model_executor.model_loader"
MODULES = {
    "instanttensor": "instanttensor",
    "fastsafetensors": "fastsafetensors",
    "tensorizer": "tensorizer",
    "runai_streamer": "runai_model_streamer",
    "runai_streamer_sharded": "runai_model_streamer",
}
"""Load formats that need a module which vLLM itself doesn't bring."""


def main(commands: list[list[str]]) -> int:
    try:
        serve = importlib.import_module("vllm.entrypoints.cli.serve")
        utils = importlib.import_module("vllm.utils.argparse_utils")
        subparsers = utils.FlexibleArgumentParser().add_subparsers()
        command = serve.cmd_init()[0]
        parser = command.subparser_init(subparsers)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return UNABLE
    return max(_read(parser, command, words) for words in commands)


def _read(parser: Any, command: Any, words: list[str]) -> int:
    try:
        args = parser.parse_args(words)
        args.model = getattr(args, "model_tag", None) or args.model
        command.validate(args)
        for name in PARSERS:
            _check_parser(args, name)
        _check_load_format(args)
    except (ValueError, TypeError, LookupError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return REFUSED
    except Exception as error:
        # Not for the arguments: a device or a module that isn't here.
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return UNABLE
    return 0


def _check_parser(args: Any, name: str) -> None:
    wanted = getattr(args, name, None)
    if not wanted or getattr(args, PLUGINS[name], None):
        return
    known = _parsers(*PARSERS[name])
    if known is None:
        _unchecked(name, wanted)
    else:
        _check(name, wanted, known)


def _parsers(modules: tuple[str, ...], manager: str) -> list[str] | None:
    for module in modules:
        try:
            return list(getattr(importlib.import_module(module), manager).list_registered())
        except Exception:
            continue
    return None


def _check_load_format(args: Any) -> None:
    wanted = getattr(args, "load_format", None)
    if not isinstance(wanted, str) or wanted == "auto":
        return
    try:
        importlib.import_module("vllm.plugins").load_general_plugins()
    except Exception as error:
        print(f"plugins of this vLLM: {error}", file=sys.stderr)
    try:
        known = importlib.import_module(LOADERS)._LOAD_FORMAT_TO_MODEL_LOADER
    except Exception:
        _unchecked("load_format", wanted)
        return
    _check("load_format", wanted, known)
    module = MODULES.get(wanted)
    if module and importlib.util.find_spec(module) is None:
        raise ValueError(f"--load-format {wanted}: the image has no Python module {module}")


def _check(name: str, wanted: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if wanted in names:
        return
    near = difflib.get_close_matches(wanted, names, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise ValueError(f"{_flag(name)} {wanted}: this vLLM has no such name; {meant}")


def _unchecked(name: str, wanted: str) -> None:
    print(f"unchecked: {_flag(name)} {wanted}: this vLLM has no list of the names")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


if __name__ == "__main__":
    sys.exit(main(COMMANDS))
