"""``pyinfra-vllm render``: all files of every node, and two recipes compared, without a node."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyinfra_vllm.errors import UserError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "write all files that a deploy would put on the nodes; no node is reached"
    render = subparsers.add_parser("render", help=text, description=text)
    render.add_argument("recipe", metavar="RECIPE", nargs="?")
    render.add_argument("--inventory", metavar="INV", help="the inventory, as for pyinfra")
    render.add_argument("--out", metavar="DIR", type=Path, help="where to write the files")
    render.add_argument("--gang", default="main", help="which gang (default: %(default)s)")
    render.add_argument(
        "--facts",
        metavar="DIR",
        type=Path,
        help="saved node states, needed where recipe or inventory leave something open",
    )
    render.add_argument(
        "--diff",
        metavar=("OLD", "NEW"),
        nargs=2,
        help="instead: what changes from one recipe to another, for the engine and for people",
    )
    render.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import catalog
    from pyinfra_vllm.compare import text

    if args.diff:
        print(text(*(catalog.find(value) for value in args.diff)), end="")
        return 0
    for name, shown in (("recipe", "RECIPE"), ("inventory", "--inventory"), ("out", "--out")):
        if getattr(args, name) is None:
            raise UserError(f"render: {shown} is missing; see pyinfra-vllm render --help")
    return _render(args)


def _render(args: argparse.Namespace) -> int:
    from pyinfra_vllm import catalog, check, render
    from pyinfra_vllm.cli import _inventory
    from pyinfra_vllm.cluster import MAIN, gang_of

    hosts = _inventory.hosts(args.inventory)
    size = sum(1 for data in hosts.values() if data.get("vllm_gang", MAIN) == args.gang)
    found = catalog.find(args.recipe, size)
    gang = gang_of(hosts, found.recipe.required_nodes, args.gang)
    states = render.saved_states(args.facts, gang) if args.facts else {}
    made, build = render.release(found, gang, states)
    changed = render.write(args.out, render.files(made, build))
    # Only said: which flags are known differs between machines, and the files must not.
    digest = build.digest if build else None
    for line in check.known_findings(found.path, found.recipe, digest) or ():
        print(f"a deploy refuses this: {line}", file=sys.stderr)
    print(f"{found.name}: release {made.digest}")
    print(f"{args.out}: {len(changed) or 'no'} file{'s' * (len(changed) != 1)} changed")
    return 0
