"""Operation: engines of others make room, those that the operator named and no other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import gevent
from pyinfra import host, logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import foreign_names
from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations.common import Commands, called, change, look, run, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.preflight.finding import Runs
from pyinfra_vllm.release import Release

_SETTLES = 3
"""Seconds after which whoever starts a stopped container anew has done so."""
_ENDS = 30
"""Seconds that a process has to end by itself."""


@operation()
@changing
def stopped(release: Release, names: Sequence[str]) -> Commands:
    """Containers, units and processes of others with these names don't run, now and after a boot.

    Only when every node has what a switch needs: what stops here has served until now.

    + release: what the gang is to serve
    + names: of containers and units; of a process ``PID@NODE``
    """
    found = look(release)
    for name in names:
        if not _runs(name, found, host.name):
            continue
        show(f"Will stop {name}, which is not ours")
        members = {node.name for node in release.content.gang.nodes}
        yield from change(called(_stop, name, members))


def _runs(name: str, state: NodeState, node: str) -> bool:
    """Whether it is one of those that the preflight has named, and no other."""
    gpus = state.gpus.value_or(None)
    seen: list[Runs] = [*state.engines.value_or(()), *state.listeners.value_or(())]
    seen += [one for one in gpus.processes if one.computes] if gpus else []
    if (process := foreign_names.process(name)) is not None:
        pids = {one.pid for one in seen if not (one.unit or one.container_id)}
        return process[1] == node and process[0] in pids
    if foreign_names.is_unit(name):
        ours = {paths.unit(gang) for gang in state.leftovers.required.gangs}
        return name in {one.unit for one in seen} - ours
    container = state.container(name)
    return container is not None and container.running and not container.ours


@dataclass(frozen=True)
class _Way:
    """Shell commands: what stops it, whether it runs; ``back``: how people have it back."""

    stop: str
    runs: str
    back: str


def _way(host: Host, name: str) -> _Way:
    if (process := foreign_names.process(name)) is not None:
        return _of_process(host, process[0])
    return (_of_unit if foreign_names.is_unit(name) else _of_container)(host, shlex.quote(name))


def _of_process(host: Host, pid: int) -> _Way:
    # One that nobody has reaped yet runs no more.
    runs = f"grep -qE '^State:[[:space:]]+[^ZX]' /proc/{pid}/status 2>/dev/null"
    stop = (
        f"kill {pid}; n=0; while {runs} && [ $n -lt {_ENDS} ]; do sleep 1; n=$((n+1)); done; "
        f"if {runs}; then kill -KILL {pid}; fi"
    )
    return _Way(stop, runs, f"its user runs it again; it was pid {pid}, in no unit or container")


def _of_unit(host: Host, unit: str) -> _Way:
    enabled = _ask(host, f"systemctl is-enabled {unit} 2>/dev/null")
    back = {"enabled": f"systemctl enable --now {unit}", "transient": "systemd-run, as before"}
    # A unit that was made on the fly can't be disabled.
    return _Way(
        f"systemctl disable --quiet {unit} 2>/dev/null; systemctl stop {unit}",
        f"systemctl is-active --quiet {unit}",
        back.get(enabled, f"systemctl start {unit}"),
    )


def _of_container(host: Host, name: str) -> _Way:
    # A restart policy would bring it back at the next boot.
    policy = _ask(host, f"docker inspect -f '{{{{.HostConfig.RestartPolicy.Name}}}}' {name}")
    return _Way(
        f"docker update --restart=no {name} >/dev/null && docker stop -t 30 {name}",
        f"docker ps --quiet --filter name=^/{name}$ | grep -q .",
        f"docker update --restart={policy or 'no'} {name}; docker start {name}",
    )


def _ask(host: Host, command: str) -> str:
    return run(host, host, StringCommand(command))[1].stdout.strip()


def _stop(state: State, host: Host, name: str, members: set[str]) -> bool:
    lost = sorted(members - {active.name for active in state.active_hosts})
    if lost:
        logger.error(f"{host.print_prefix}{name} goes on: {', '.join(lost)} failed above")
        return False
    way = _way(host, name)
    ok, _ = run(host, host, StringCommand(f"{{ {way.stop}; }} >/dev/null"))
    if not ok:
        logger.error(f"{host.print_prefix}{name} can't be stopped")
        return False
    logger.info(f"{host.print_prefix}{name} is stopped; to have it back: {way.back}")
    gevent.sleep(_SETTLES)
    again, _ = run(host, host, StringCommand(way.runs))
    if again:
        logger.error(
            f"{host.print_prefix}{name} runs again: something else starts it; name that instead"
        )
    return not again
