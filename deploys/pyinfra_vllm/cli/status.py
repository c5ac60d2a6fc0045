"""``pyinfra-vllm status``: how the gangs are."""

from __future__ import annotations

import argparse
import time

from pyinfra_vllm.cli import _session

_CLEAR = "\x1b[H\x1b[2J"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "how the gangs are: what they serve, every rank, the last collapse, tokens per second"
    status = subparsers.add_parser(
        "status",
        help=text,
        description=text,
        epilog="Exit code 0: every gang serves or is paused, and every node answers; else 1.",
    )
    status.add_argument("inventory", metavar="INVENTORY", help="a pyinfra inventory")
    status.add_argument("--json", action="store_true", help="as a document")
    status.add_argument("--watch", action="store_true", help="look again and again, until ^C")
    status.add_argument(
        "--interval", type=float, default=5.0, metavar="S", help="seconds between two looks (5)"
    )
    _session.add_password(status)
    status.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import gang_status_text
    from pyinfra_vllm.cli import _status

    password = _session.password(args)
    while True:
        found = _status.status(args.inventory, password)
        if args.json:
            shown = found.model_dump_json(by_alias=True, indent=None if args.watch else 1) + "\n"
        else:
            shown = gang_status_text.text(found)
        print(_CLEAR + shown if args.watch and not args.json else shown, end="", flush=True)
        if not args.watch:
            return found.exit_code
        time.sleep(args.interval)
