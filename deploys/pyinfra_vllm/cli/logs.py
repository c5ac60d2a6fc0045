"""``pyinfra-vllm logs``: the journals of all ranks as one."""

from __future__ import annotations

import argparse

from pyinfra_vllm.cli import _session


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "the logs of all ranks, interleaved by time"
    logs = subparsers.add_parser(
        "logs", help=text, description=text, epilog="Exit code 1: a node didn't answer."
    )
    logs.add_argument("inventory", metavar="INVENTORY", help="a pyinfra inventory")
    logs.add_argument("--gang", metavar="NAME", default="main", help="which (default: main)")
    logs.add_argument("--rank", type=int, metavar="N", action="append", help="this rank only")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until ^C")
    logs.add_argument(
        "--since", metavar="WHEN", help='as journalctl takes it: "10 min ago", "2026-01-31 02:00"'
    )
    logs.add_argument("-n", "--lines", type=int, metavar="N", help="so many of each rank")
    logs.add_argument(
        "--first-failure",
        action="store_true",
        help="the last lines of the rank that went first when the last start ended",
    )
    _session.add_password(logs)
    logs.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import journal
    from pyinfra_vllm.cli import _logs

    lines = args.lines
    if lines is None and not args.since:
        lines = 10 if args.follow else journal.LINES
    with _logs.ranks(args.inventory, args.gang, args.rank, _session.password(args)) as found:
        if args.first_failure:
            print("\n".join(found.first_failure()))
        elif args.follow:
            found.follow(journal.command(args.gang, args.since, lines, follow=True))
        else:
            for entry in found.entries(journal.command(args.gang, args.since, lines, follow=False)):
                print(entry.line)
        return 1 if found.silent else 0
