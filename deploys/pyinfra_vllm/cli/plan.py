"""``pyinfra-vllm plan``: what a deploy would change."""

from __future__ import annotations

import argparse

from pyinfra_vllm.cli import _session


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "say what a deploy of the recipe would change, and what that costs; changes nothing"
    plan = subparsers.add_parser(
        "plan",
        help=text,
        description=text,
        epilog="Exit code 0: nothing to do; 2: changes; 1: a node can't be read, no node "
        "matches, or a deploy would refuse.",
    )
    plan.add_argument("inventory", metavar="INVENTORY", help="a pyinfra inventory")
    plan.add_argument("recipe", metavar="RECIPE", help="name, part of a name, or path")
    plan.add_argument(
        "--limit", metavar="HOST", action="append", help="these hosts, patterns or groups only"
    )
    shape = plan.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="the plan as a document")
    shape.add_argument("--markdown", action="store_true", help="for a pull request's comment")
    _session.add_password(plan)
    plan.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm import plan_text
    from pyinfra_vllm.cli import _plan

    found = _plan.plan(args.inventory, args.recipe, args.limit, _session.password(args))
    if args.json:
        print(found.model_dump_json(by_alias=True, indent=1))
    elif args.markdown:
        print(plan_text.markdown(found), end="")
    else:
        print(plan_text.text(found), end="")
    return found.exit_code
