"""``pyinfra-vllm``: one module here for each subcommand.

A module has ``add_parser(subparsers)``, which adds its parser and sets the
default ``run``, and ``run(args) -> int``, the exit code. It imports what it needs
inside ``run``, so that ``--help`` stays fast.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from pyinfra_vllm.errors import UserError


class _Parser(argparse.ArgumentParser):
    """Exits with 1 for a wrong option: 2 is what a plan with changes says."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: this process's own); returns the exit code."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
    except UserError as error:
        print(f"pyinfra-vllm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def parser() -> argparse.ArgumentParser:
    """The parser with every subcommand that has a module here."""
    found = _Parser(prog="pyinfra-vllm", description=_description())
    subparsers = found.add_subparsers(required=True, metavar="COMMAND")
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}").add_parser(subparsers)
    return found


def _description() -> str:
    import pyinfra_vllm

    return pyinfra_vllm.__doc__ or ""
