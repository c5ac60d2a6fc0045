"""Operation: engines of others make room, those that the operator named and no other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import gevent
from pyinfra import logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations.common import Commands, called, change, look, run, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release

_SETTLES = 3
"""Seconds after which whoever starts a stopped container anew has done so."""


@operation()
@changing
def stopped(release: Release, names: Sequence[str]) -> Commands:
    """Containers and units of others that bear these names don't run, now and after a boot.

    Only when every node has what a switch needs: what stops here has served until now.

    + release: what the gang is to serve
    + names: of containers and units
    """
    found = look(release)
    for name in names:
        if not _runs(name, found):
            continue
        show(f"Will stop {name}, which is not ours")
        members = {node.name for node in release.content.gang.nodes}
        yield from change(called(_stop, name, members))


def _runs(name: str, state: NodeState) -> bool:
    if name.endswith(".service"):
        gpus = state.gpus.value_or(None)
        units = {process.unit for process in state.engines.value_or(())}
        units |= {process.unit for process in state.listeners.value_or(())}
        units |= {process.unit for process in gpus.processes} if gpus else set()
        return name in units and not any(
            name == paths.unit(gang) for gang in state.leftovers.required.gangs
        )
    container = state.container(name)
    return container is not None and container.running and not container.ours


def _stop(state: State, host: Host, name: str, members: set[str]) -> bool:
    lost = sorted(members - {active.name for active in state.active_hosts})
    if lost:
        logger.error(f"{host.print_prefix}{name} goes on: {', '.join(lost)} failed above")
        return False
    word = shlex.quote(name)
    if name.endswith(".service"):
        stop, back = f"systemctl disable --now {word}", f"systemctl enable --now {word}"
        runs = f"systemctl is-active --quiet {word}"
    else:
        # A restart policy would bring it back at the next boot.
        policy = f"docker inspect -f '{{{{.HostConfig.RestartPolicy.Name}}}}' {word}"
        _, output = run(host, host, StringCommand(policy))
        stop = f"docker update --restart=no {word} >/dev/null && docker stop -t 30 {word}"
        back = (
            f"docker update --restart={output.stdout.strip() or 'no'} {word}; docker start {word}"
        )
        runs = f"docker ps --quiet --filter name=^/{word}$ | grep -q ."
    ok, _ = run(host, host, StringCommand(f"{stop} >/dev/null"))
    if not ok:
        logger.error(f"{host.print_prefix}{name} can't be stopped")
        return False
    logger.info(f"{host.print_prefix}{name} is stopped; to have it back: {back}")
    gevent.sleep(_SETTLES)
    again, _ = run(host, host, StringCommand(runs))
    if again:
        logger.error(
            f"{host.print_prefix}{name} runs again: something else starts it; name that instead"
        )
    return not again
