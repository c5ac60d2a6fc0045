"""``pyinfra-vllm lab``: four nodes on this machine."""

from __future__ import annotations

import argparse
import os


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "four nodes (systemd machines with sshd and dockerd) on this Linux machine"
    lab = subparsers.add_parser("lab", help=text, description=text)
    lab.add_argument(
        "--name",
        default=os.environ.get("PYINFRA_VLLM_LAB", "lab"),
        help="which lab (default: %(default)s; environment variable PYINFRA_VLLM_LAB)",
    )
    actions = lab.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser("up", help="bring it up; starts machines that are off")
    up.add_argument(
        "--no-images", action="store_true", help="leave out the images that builds start from"
    )
    down = actions.add_parser("down", help="remove it with everything that belongs to it")
    down.add_argument("--keep", action="store_true", help="keep the disks for the next up")
    actions.add_parser("status", help="machine, address, up or down, dockerd")
    ssh = actions.add_parser("ssh", help="open a shell on a node, or run a command there")
    ssh.add_argument("node", metavar="NODE")
    ssh.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER)
    for action, text in (
        ("reboot", "reboot a node in order and wait until it is back"),
        ("kill", "cut a node's power; `up` starts it again"),
    ):
        actions.add_parser(action, help=text).add_argument("node", metavar="NODE")
    lab.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyinfra_vllm.lab import commands, control

    if args.action == "up":
        commands.up(args.name, with_images=not args.no_images)
    elif args.action == "down":
        commands.down(args.name, keep=args.keep)
    elif args.action == "status":
        return 0 if control.status(args.name) else 1
    elif args.action == "ssh":
        words = args.command[1:] if args.command[:1] == ["--"] else args.command
        control.open_ssh(args.name, args.node, words)
    elif args.action == "reboot":
        control.reboot(args.name, args.node)
    else:
        control.kill(args.name, args.node)
    return 0
