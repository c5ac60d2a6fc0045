"""Operations: ranks move. Nobody is told who it is before the old head has stopped."""

from __future__ import annotations

import time
from typing import Any

from pyinfra import host, logger, state
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import carried_history, placement
from pyinfra_vllm.agent import paths, switches
from pyinfra_vllm.carried_history import moved
from pyinfra_vllm.changes import States, file_is_right
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.inventory import hosts_by_address
from pyinfra_vllm.moves import Move, move
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    look_at_gang,
    place,
    run,
    show,
    this_node,
)
from pyinfra_vllm.operations.lock import changing, confirm
from pyinfra_vllm.operations.members import found_and_wanted
from pyinfra_vllm.release import FILE_MODE, Release


@operation()
@changing
def head_stopped(release: Release) -> Commands:
    """The head of before holds no rank any more, when the head moves.

    One that is a host of the inventory is stopped; another one was said to be dead.

    + release: what the gang is to serve
    """
    found = _move(release)
    if found is None:
        return
    gang, name = release.content.gang, this_node(release).name
    for line in found.lines if name == gang.head.name else ():
        show(f"{line}; the gang doesn't serve meanwhile")
    if name in found.old_heads:
        confirm(host)
        yield from change(StringCommand("systemctl", "stop", paths.unit(gang.name)))
        yield from change(called(_carry, name, gang.head.name, gang.name))
        yield from change(place(_no_head(gang.name)))
    if found.gone and name == gang.head.name:
        confirm(host)
        if elsewhere := _host_at(found.gone):
            yield from change(called(_stop_elsewhere, elsewhere, name, gang.name))
        else:
            yield from change(called(_carry_nothing, found.gone, name, gang.name))
    marker = _pause_of(found, look_at_gang(release), gang.name)
    if marker and name == gang.head.name:
        yield from change(place([placement.file(paths.paused(gang.name), marker, FILE_MODE)]))


@operation()
@changing
def ranks_known(release: Release) -> Commands:
    """Every node whose rank or whose peers have changed is stopped, and knows who it is now.

    + release: what the gang is to serve
    """
    node, gang = this_node(release), release.content.gang
    path = paths.members(gang.name)
    found, text = found_and_wanted(release)
    if file_is_right(found, text):
        return
    # Where nobody moves, the file is mended by now when this runs.
    if not state.is_executing and _move(release) is None:
        return
    show(f"Will stop {paths.unit(gang.name)}, and make this node rank {node.rank}")
    yield from change(StringCommand("systemctl", "stop", paths.unit(gang.name)))
    # What a node wanted when it was the head last is nothing to go back to.
    gone = _no_head(gang.name) if node.rank else _no_wish(gang.name)
    gone += [placement.remove(paths.paused(gang.name))] if node.rank else []
    yield from change(place([*gone, placement.file(path, text, FILE_MODE)]))


def _move(release: Release) -> Move | None:
    return move(release.content.gang, look_at_gang(release))


def _no_head(gang: str) -> list[placement.Action]:
    """What only a head has, but for the history of what has been."""
    return [*_no_wish(gang), placement.remove(paths.starts(gang))]


def _no_wish(gang: str) -> list[placement.Action]:
    return [placement.remove(path(gang)) for path in (paths.wanted, paths.lease)]


def _pause_of(found: Move, states: States, gang: str) -> str:
    """The mark that the gang is paused, where an old head has it."""
    marks = [states[name].file(paths.paused(gang)) for name in found.old_heads if name in states]
    return next((mark.text or "" for mark in marks if mark), "")


def _host_at(address: str) -> str:
    """Name of the host of the inventory, outside the gang, with a fabric address."""
    at = hosts_by_address(state).get(address)
    return at.name if at and at.connected else ""


def _carry(state: State, host: Host, old: str, new: str, gang: str) -> bool:
    """The history and the count of starts go on at the new head. It's no reason to stop if not."""
    source = state.inventory.get_host(old)
    theirs, book = _lines(source, host, gang), run(source, host, _cat(paths.starts(gang)))[1].stdout
    return _write_history(state, host, new, gang, theirs, book, moved(time.time(), old, True))


def _carry_nothing(state: State, host: Host, was: str, new: str, gang: str) -> bool:
    """The old head is dead: the new one says that it knows nothing of what was before."""
    return _write_history(state, host, new, gang, [], "", moved(time.time(), was, False))


def _write_history(
    state: State,
    host: Host,
    new: str,
    gang: str,
    theirs: list[str],
    book: str,
    note: dict[str, Any],
) -> bool:
    at = state.inventory.get_host(new)
    files = carried_history.texts(gang, _lines(at, host, gang), theirs, note)
    files |= {paths.starts(gang): text} if (text := carried_history.book(book, note["at"])) else {}
    actions = [placement.file(path, text, FILE_MODE) for path, text in files.items()]
    if not run(at, host, place(actions))[0]:
        logger.warning(f"{at.print_prefix}the history of the old head is not carried here")
    return True


def _lines(at: Host, asking: Host, gang: str) -> list[str]:
    """The whole history that a node has, the oldest first."""
    return list(run(at, asking, _cat(*reversed(switches.files(gang))))[1].stdout_lines)


def _cat(*files: str) -> StringCommand:
    return StringCommand("cat", *files, "2>/dev/null", "||", "true")


def _stop_elsewhere(state: State, host: Host, name: str, new: str, gang: str) -> bool:
    at = state.inventory.get_host(name)
    unit = paths.unit(gang)
    # It is no member any more: it must not come back as a head at the next boot.
    command = f"systemctl disable --now {unit} 2>/dev/null; ! systemctl is-active --quiet {unit}"
    ok, _ = run(at, host, StringCommand(command))
    ok = ok and _carry(state, host, name, new, gang)
    ok = ok and run(at, host, place(_no_head(gang)))[0]
    if not ok:
        raise UserError(f"{name}: the old head can't be stopped; nothing is moved")
    logger.info(f"{host.print_prefix}{name}, the head until now, is stopped")
    return True
