"""What all operations share: the node they are on, its state, placing files with a diff."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from pyinfra import host, logger, state
from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.output import format_text
from pyinfra.connectors.util import CommandOutput
from pyinfra.operations.util.files import generate_color_diff

from pyinfra_vllm import placement
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.facts import survey
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.questions import query_of
from pyinfra_vllm.release import Release

Commands = Generator[PyinfraCommand, None, None]
"""What an operation yields."""


def this_node(release: Release) -> Node:
    """The node of the host that the operation runs on."""
    return release.content.gang.node(host.name)


def look(release: Release, at: Host | None = None) -> NodeState:
    """State of the node that the operation runs on."""
    asked = at or host
    node = release.content.gang.node(asked.name)
    return _whole(
        asked.name, survey.node_state(state, asked, query_of(release.content.question, node))
    )


def look_at_gang(release: Release) -> dict[str, NodeState]:
    """States of all nodes of the gang by name, in rank order."""
    gang = release.content.gang
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    states = survey.gang_states(
        state, hosts, lambda at: query_of(release.content.question, gang.node(at.name))
    )
    return {name: _whole(name, found) for name, found in states.items()}


def _whole(name: str, found: NodeState) -> NodeState:
    """The state itself when every part was read: an operation can't compare with half of one."""
    if failures := found.failures():
        raise PyinfraError("\n".join(f"{name}: {part}: {why}" for part, why in failures.items()))
    return found


def change(*commands: PyinfraCommand) -> Commands:
    """Yield commands; what was known of the node is dropped after each of them."""
    for command in commands:
        yield command
        survey.forget(state, host)


def place(actions: Sequence[placement.Action]) -> StringCommand:
    """One remote command that carries out all ``actions``."""
    return StringCommand("python3 - pyinfra-vllm.place.v1", _stdin=placement.script(actions))


def run(
    at: Host, command: StringCommand, print_output: bool = False, stdin: str | None = None
) -> tuple[bool, CommandOutput]:
    """Run a command inside a FunctionCommand, as root in the way that the operation says."""
    resolved: dict[str, Any] = dict(at.current_op_global_arguments or {})
    arguments = {k: v for k, v in resolved.items() if k in CONNECTOR_ARGUMENT_KEYS}
    arguments["_stdin"] = stdin
    return at.run_shell_command(command, print_output=print_output, **arguments)


def show_diff(path: str, current: str | None, desired: str) -> None:
    """Print the diff of one file as pyinfra's own files.put does, where --diff is set."""
    if not state.config.DIFF:
        return
    verb = "create" if current is None else "modify"
    host.log(f"Will {verb} {format_text(path, bold=True)}", logger.info)
    before = (current or "").splitlines(keepends=True)
    for line in generate_color_diff(before, desired.splitlines(keepends=True)):
        logger.info("  %s", line)
    logger.info("")


def show(message: str) -> None:
    """Print one line about what will change, where --diff is set."""
    if state.config.DIFF:
        host.log(message, logger.info)
