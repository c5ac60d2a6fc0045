"""Operation: the gang serves; it ends when the head has answered a completion, or gone back."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import host, logger
from pyinfra.api import Host, State, operation

from pyinfra_vllm.goal import Goal
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look_at_gang,
    this_node,
)
from pyinfra_vllm.operations.watching import Watch
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import is_paused, restart_reasons, serves


@operation()
@explained
def ready(release: Release, goal: Goal, failures: Mapping[str, float] | None = None) -> Commands:
    """The head has answered a real completion with this release.

    Only watches: shows the phase, the seconds and the engine's last line, and the log of the
    rank whose engine died first. Fails when the head has gone back to the release before, or
    has given up; whatever becomes of the controller, the head decides.

    + release: what the gang is to serve
    + goal: the same, with the time that it is allowed
    + failures: node -> when its engine had died before this run; that is no news
    """
    states = look_at_gang(release)
    if this_node(release).rank != 0 or serves(release, states):
        return
    if is_paused(release, states) and not restart_reasons(release, states):
        return
    missing = [node.name for node in release.content.gang.nodes if node.name not in states]
    if missing:
        logger.warning(f"{host.print_prefix}not waited for: {', '.join(missing)} can't be reached")
        return
    yield from change(called(_wait, goal, failures or {}))


def _wait(state: State, host: Host, goal: Goal, failures: Mapping[str, float]) -> bool:
    return Watch(state, host, goal, failures).wait() in ("serving", "paused")
