"""What stops a deploy before anything is changed, once it is known what it is to bring about."""

from __future__ import annotations

import sys

from pyinfra import logger
from pyinfra.api import State

from pyinfra_vllm import catalog, check, preflight
from pyinfra_vllm.changes import States, image_lacking, image_source
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.inventory import hosts_by_address
from pyinfra_vllm.gangs import Members
from pyinfra_vllm.image import Build
from pyinfra_vllm.moves import move, refusal
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import restart_reasons


def refuse_disorder() -> None:
    """UserError for options that would let nodes run ahead of each other."""
    for option in ("--serial", "--no-wait"):
        if option in sys.argv:
            raise UserError(f"{option} breaks the order between the nodes of a gang; leave it out")


def refuse(problems: list[str]) -> None:
    """UserError with all of them, if there are any."""
    if problems:
        raise UserError("\n".join(["nothing was changed:", *problems]))


def refuse_findings(findings: list[preflight.Finding]) -> None:
    """Show what was found; UserError when something stops the deploy."""
    logger.info(preflight.summary(findings))
    for line in preflight.lines(findings, "warn", "waived", "unknown"):
        logger.info(f"  {line}")
    refuse([finding.sentence for finding in findings if finding.status == "fail"])


def refuse_arguments(found: catalog.Found, build: Build | None) -> None:
    """UserError for flags that the image doesn't have, where it was asked before."""
    digest = build.digest if build else None
    refuse(check.known_findings(found.path, found.recipe, digest) or [])


def say_lost_nodes(release: Release, states: States) -> None:
    """A node that can't be reached is left out of everything but a switch, which needs it."""
    gang = release.content.gang
    lost = [node.name for node in gang.nodes if node.name not in states]
    if not lost:
        return
    names = ", ".join(lost)
    logger.warning(f"{names}: can't be reached (see above), and left out; a switch needs all nodes")
    if gang.head.name in lost and image_source(release, states) is None:
        refuse([f"the image is built on {gang.head.name}, and that can't be reached"])


def refuse_partial_switch(state: State, release: Release, states: States) -> None:
    """UserError when ``--limit`` leaves out a node that a switch or an image needs."""
    active = {host.name for host in state.active_hosts}
    # Nodes that can't be reached stop a switch at the gate, when the others are staged.
    left_out = [
        node
        for node in release.content.gang.nodes
        if node.name not in active and node.name in states
    ]
    if not left_out:
        return
    names = ", ".join(node.name for node in left_out)
    remedy = f"and {names} is left out; run without --limit"
    if restart_reasons(release, states):
        refuse([f"the gang must be started anew, {remedy}"])
    lacking = image_lacking(release, states)
    if lacking and {image_source(release, states), *lacking} & set(left_out):
        refuse([f"the image must go from node to node, {remedy}"])


def refuse_move(inventory: Members, state: State, gang: Gang, states: States) -> tuple[str, ...]:
    """What moves, for people. UserError when the head leaves a node that may still be one."""
    found, said = move(gang, states), inventory.nodes[gang.head.name].get("dead")
    if found is None:
        return ()
    dead = set(str(said).split(",")) if said is not None else set()
    names = {address: host.name for address, host in hosts_by_address(state).items()}
    alive = {host.name for host in state.inventory if host.connected}
    refuse([why] if (why := refusal(found, gang, dead, names, alive)) else [])
    lines = tuple(found.lines) or ("addresses of nodes change",)
    logger.warning(f"{'; '.join(lines)}: the gang doesn't serve until its new head has started")
    return lines
