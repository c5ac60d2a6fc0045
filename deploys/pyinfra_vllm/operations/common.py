"""What all operations share: the node they are on, its state, placing files with a diff."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate
from weakref import WeakKeyDictionary

from paramiko import SSHException
from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.output import format_text
from pyinfra.connectors.util import CommandOutput
from pyinfra.operations.util.files import generate_color_diff
from typing_extensions import ParamSpec

from pyinfra_vllm import placement
from pyinfra_vllm.cluster import Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey, told
from pyinfra_vllm.facts.reach import connector_arguments
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.node.models import FileState
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.questions import query_of
from pyinfra_vllm.release import Release

Commands = Generator[PyinfraCommand, None, None]
"""What an operation yields."""


P = ParamSpec("P")

_KEYS: WeakKeyDictionary[State, dict[str, str]] = WeakKeyDictionary()


def key_of(run: State, op_hash: str) -> str:
    """Module and function of an operation that has run; empty for one that isn't ours."""
    return _KEYS.get(run, {}).get(op_hash, "")


def explained(function: Callable[P, Commands]) -> Callable[P, Commands]:
    """An operation whose UserError is shown as its message alone.

    While pyinfra prepares, it ends the run; later it fails this node, and the others go
    on to the next gate.
    """
    key = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Commands:
        if listener := told.to(host.state):
            listener.begins(key)
        if host.executing_op_hash:
            _KEYS.setdefault(host.state, {})[host.executing_op_hash] = key
        try:
            yield from function(*args, **kwargs)
        except (UserError, Refusal) as error:
            message = str(error) if isinstance(error, Refusal) else f"{host.name}: {error}"
            if not state.is_executing:
                raise Refusal(message) from None
            yield called(_fail, message)

    return wrapped


def called(
    function: Callable[Concatenate[State, Host, P], bool], *args: P.args, **kwargs: P.kwargs
) -> FunctionCommand:
    """A step of an operation that is a call: ``function(state, host, …)`` says if it went well.

    Its UserError is shown as its message alone, and fails this node.
    """

    # pyinfra takes the result only of a function with exactly these parameters.
    def call(state: State, host: Host) -> bool:
        try:
            return function(state, host, *args, **kwargs)
        except (UserError, Refusal) as error:
            return _fail(state, host, str(error))
        except (OSError, SSHException) as error:
            return _fail(state, host, f"a node doesn't answer any more: {error}")

    return FunctionCommand(call, (), {})


def _fail(state: State, host: Host, message: str) -> bool:
    logger.error(f"{host.print_prefix}{message}")
    return False


def this_node(release: Release) -> Node:
    """The node of the host that the operation runs on."""
    return release.content.gang.node(host.name)


def look(release: Release, at: Host | None = None) -> NodeState:
    """State of the node that the operation runs on."""
    asked = at or host
    node = release.content.gang.node(asked.name)
    return survey.node_state(state, asked, lambda _: query_of(release.content.question, node))


def look_at_gang(release: Release) -> dict[str, NodeState]:
    """States of all nodes of the gang by name, in rank order."""
    gang = release.content.gang
    hosts = [state.inventory.get_host(node.name) for node in gang.nodes]
    return survey.gang_states(
        state, hosts, lambda at: query_of(release.content.question, gang.node(at.name))
    )


def change(*commands: PyinfraCommand) -> Commands:
    """Yield commands; what was known of the node is dropped after each of them."""
    for command in commands:
        yield command
        # Who makes a plan goes on here though the command has not been run.
        if state.is_executing:
            survey.forget(state, host)


def place(actions: Sequence[placement.Action]) -> StringCommand:
    """One remote command that carries out all ``actions``."""
    return StringCommand("python3 - pyinfra-vllm.place.v1", _stdin=placement.script(actions))


def run(
    at: Host,
    asking: Host,
    command: StringCommand,
    print_output: bool = False,
    stdin: str | None = None,
) -> tuple[bool, CommandOutput]:
    """Run a command on ``at`` inside a function that is :func:`called` on ``asking``."""
    arguments = connector_arguments(at.state, at, asking)
    arguments.update(command.connector_arguments)
    if stdin is not None:
        arguments["_stdin"] = stdin
    return at.run_shell_command(command, print_output=print_output, **arguments)


_SILENT: set[str] = set()


@contextmanager
def silent(at: Host) -> Iterator[None]:
    """Nothing is shown of what would change on a host: it is looked at again."""
    _SILENT.add(at.name)
    try:
        yield
    finally:
        _SILENT.discard(at.name)


def _shows() -> bool:
    return bool(state.config.DIFF) and host.name not in _SILENT


def show_file(
    path: str, found: FileState | None, desired: str, mode: int, before: FileState | None = None
) -> None:
    """Say how a file is brought to ``desired``; ``before``: what a new one takes the place of."""
    is_file = found is not None and found.type == "file"
    if found and is_file and found.sha256 == hashlib.sha256(desired.encode()).hexdigest():
        show(f"Will set mode {mode:o} and owner root on {path}")
    elif found and not is_file:
        show(f"Will replace {path}: it is a {found.type}, not a file")
    elif found and found.text is None:
        show(f"Will replace {path}: not everybody may read it as it is, so it isn't shown")
    elif found:
        show_diff(path, found.text, desired)
    else:
        show_diff(path, None, desired, before.text if before else None)


def show_diff(path: str, current: str | None, desired: str, before: str | None = None) -> None:
    """Print the diff of one file as pyinfra's own files.put does, where --diff is set.

    ``current`` None: the file is new; it is then compared with ``before``, if anything.
    """
    if listener := told.to(host.state):
        listener.hears_diff(path, current, desired, before)
    if not _shows():
        return
    verb = "create" if current is None else "modify"
    host.log(f"Will {verb} {format_text(path, bold=True)}", logger.info)
    lines = (current or before or "").splitlines(keepends=True)
    for line in generate_color_diff(lines, desired.splitlines(keepends=True)):
        logger.info("  %s", line)
    logger.info("")


def show(message: str) -> None:
    """Print one line about what will change, where --diff is set."""
    if listener := told.to(host.state):
        listener.hears(message)
    if _shows():
        host.log(message, logger.info)
