"""``pyinfra-vllm facts``: what is on the nodes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyinfra_vllm.cli import _session

if TYPE_CHECKING:
    from pyinfra_vllm.cli._nodes import Read


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "show what is on the nodes, or save it for plans without them; changes nothing"
    facts = subparsers.add_parser(
        "facts", help=text, description=text, epilog="Exit code 1: a node didn't answer."
    )
    facts.add_argument("inventory", metavar="INVENTORY", help="a pyinfra inventory")
    facts.add_argument(
        "--recipe", metavar="NAME", help="ask for this recipe only, and show its preflight"
    )
    facts.add_argument(
        "--save", metavar="DIR", help="write DIR/HOST.json for each node; inventory/ci.py reads it"
    )
    _session.add_password(facts)
    facts.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import overview
    from pyinfra_vllm.cli import _nodes

    found = _nodes.read(args.inventory, args.recipe, _session.password(args))
    for line in overview.table(found.states, found.silent):
        print(line)
    if args.recipe:
        _show_preflight(found)
    if args.save:
        print(_save(found, args.save), file=sys.stderr)
    return 1 if found.silent else 0


def _show_preflight(found: Read) -> None:
    from pyinfra_vllm import fabric, preflight
    from pyinfra_vllm.cli._nodes import build_of
    from pyinfra_vllm.cluster import Gang

    (wanted,) = found.recipes
    for gang in found.gangs:
        states = {n.name: found.states[n.name] for n in gang.nodes if n.name in found.states}
        if gang.size < wanted.recipe.required_nodes or not states:
            continue
        part = Gang(gang.name, gang.nodes[: wanted.recipe.required_nodes])
        whole = fabric.derived(part, states)
        results = preflight.findings(wanted.recipe, whole, build_of(wanted), states)
        for line in (*fabric.notes(whole), preflight.summary(results)):
            print(line)
        for line in preflight.lines(results, "fail", "warn", "waived", "unknown"):
            print(f"  {line}")


def _save(found: Read, folder: str) -> str:
    from pyinfra_vllm.cluster import plain_name

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, state in found.states.items():
        path = Path(folder) / f"{plain_name(name)}.json"
        path.write_text(state.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
    return f"saved to {folder}: {', '.join(found.states) or 'nothing'}"
