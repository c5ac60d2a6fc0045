"""Notes how long each operation takes and what it changes, and sums it up when the run ends."""

from __future__ import annotations

import time
from weakref import WeakKeyDictionary

from pyinfra import logger
from pyinfra.api import Host, Inventory, State
from pyinfra.api.state import BaseStateCallback

from pyinfra_vllm import consequences, goal
from pyinfra_vllm.facts import survey
from pyinfra_vllm.operations.common import key_of
from pyinfra_vllm.operations.watching import api_url
from pyinfra_vllm.release import Release
from pyinfra_vllm.run_summary import Served, Stage, lines
from pyinfra_vllm.standing import standing


class Progress(BaseStateCallback):
    """A run of pyinfra, watched through its own callbacks."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._stages: dict[str, Stage] = {}
        self._since: dict[str, float] = {}
        self._gangs: dict[str, Served] = {}
        self._standings: dict[str, str] = {}
        self._is_told = False

    def serves(self, release: Release, inventory: Inventory) -> None:
        """The run is to make this release's gang serve it."""
        content = release.content
        head = inventory.get_host(content.gang.head.name)
        self._gangs[content.gang.name] = Served(
            gang=content.gang.name,
            recipe=content.recipe_name,
            release=release.digest,
            url=api_url(head, goal.of_release(release)),
            head=head.name,
            nodes=frozenset(node.name for node in content.gang.nodes),
        )

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        name = sorted(state.get_op_meta(op_hash).names)[0].rpartition(" | ")[2]
        self._stages[op_hash] = Stage(name)
        self._since[op_hash] = time.monotonic()

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        stage = self._stages[op_hash]
        if key := key_of(state, op_hash):
            stage.consequence = consequences.of(key)
        stage.seconds = time.monotonic() - self._since[op_hash]
        for host, operations in state.ops.items():
            found = operations.get(op_hash)
            if found is not None and found.operation_meta.is_complete():
                if found.operation_meta.did_error():
                    stage.failed.add(host.name)
                elif found.operation_meta.did_change():
                    stage.changed.add(host.name)
        for gang in self._gangs.values():
            self._note(state, gang, stage)

    def _note(self, state: State, gang: Served, stage: Stage) -> None:
        """How the gang stands, from the last look at its head; a restart makes that old."""
        head = state.inventory.get_host(gang.head)
        seen = survey.last_seen(head)
        if head in state.failed_hosts:
            self._standings[gang.gang] = f"{head.name}, the head, can't be reached"
        elif seen is not None:
            self._standings[gang.gang] = standing(gang.release, seen)
        elif stage.consequence in ("restart", "watch") and stage.changed:
            self._standings.pop(gang.gang, None)

    def host_disconnect(self, state: State, host: Host) -> None:  # type: ignore[override]
        if self._is_told or not self._stages:
            return
        self._is_told = True
        logger.info("--> Summary:")
        seconds = time.monotonic() - self._began
        stages, gangs = list(self._stages.values()), list(self._gangs.values())
        for line in lines(stages, gangs, seconds, self._standings):
            logger.info(f"    {line}")


_WATCHED: WeakKeyDictionary[State, Progress] = WeakKeyDictionary()


def watch(host: Host) -> Progress:
    """The watch over the run that ``host`` belongs to, begun at the first call."""
    state = host.state
    if state not in _WATCHED:
        _WATCHED[state] = Progress()
        state.add_callback_handler(_WATCHED[state])
    return _WATCHED[state]
