"""Script for the inside of an image: let its own ``vllm serve`` read command lines.

It is sent on standard input with a JSON document in place of ``COMMANDS`` (lists of the words
that follow ``serve``). Exit code 0: all can be read; 2: one can't, with vLLM's own reason as the
last line; anything else: this vLLM can't be asked in this way.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

COMMANDS: list[list[str]] = []
REFUSED, UNABLE = 2, 3


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
    except (ValueError, TypeError, LookupError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return REFUSED
    except Exception as error:
        # Not for the arguments: a device or a module that isn't here.
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return UNABLE
    return 0


if __name__ == "__main__":
    sys.exit(main(COMMANDS))
