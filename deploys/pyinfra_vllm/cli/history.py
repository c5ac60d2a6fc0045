"""``pyinfra-vllm history``: what the gangs were asked to serve, and how it ended."""

from __future__ import annotations

import argparse
import json
import sys

from pyinfra_vllm.cli import _session


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "what the gangs were asked to serve: when, by whom, how it ended, time without service"
    history = subparsers.add_parser(
        "history", help=text, description=text, epilog="Exit code 1: a head didn't answer."
    )
    history.add_argument("inventory", metavar="INVENTORY", help="a pyinfra inventory")
    history.add_argument("--json", action="store_true", help="as a document")
    _session.add_password(history)
    history.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import gang_history
    from pyinfra_vllm.cli import _nodes

    found = _nodes.heads(args.inventory, _session.password(args))
    known = {
        gang.name: gang_history.rows(found.states[gang.head.name], gang.name)
        for gang in found.gangs
        if gang.head.name in found.states
    }
    if args.json:
        shown = {name: [row.document() for row in rows] for name, rows in known.items()}
        print(json.dumps({"schema": 1, "gangs": shown}, indent=1))
    else:
        for name, rows in known.items():
            print(f"gang {name}", *gang_history.table(rows), sep="\n")
    for name, why in found.silent.items():
        print(f"{name}: {why}", file=sys.stderr)
    return 1 if found.silent else 0
