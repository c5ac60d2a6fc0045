"""``pyinfra-vllm check``: recipes looked at without a node."""

from __future__ import annotations

import argparse
import sys


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "say what is wrong with recipes, one line a finding; no node is reached"
    check = subparsers.add_parser(
        "check", help=text, description=text, epilog="Exit code 0: nothing found; 1: findings."
    )
    check.add_argument(
        "recipes",
        metavar="RECIPE",
        nargs="*",
        help="name, part of a name, or path (default: every recipe here)",
    )
    check.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm.check import check

    report = check(args.recipes)
    for line in report.findings:
        print(line)
    counted = f"{report.recipes} recipe{'s' * (report.recipes != 1)}"
    found = f"{len(report.findings) or 'no'} finding{'s' * (len(report.findings) != 1)}"
    flags = f"; flags unchecked: {', '.join(sorted(report.unchecked))}" if report.unchecked else ""
    print(f"{counted}, {found}{flags}", file=sys.stderr)
    return 1 if report.findings else 0
