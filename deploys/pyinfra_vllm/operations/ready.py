"""Operation: the gang serves; it ends when the head has answered a completion."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import gevent
from pyinfra import host, logger
from pyinfra.api import Host, State, operation

from pyinfra_vllm import serving
from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look_at_gang,
    this_node,
)
from pyinfra_vllm.operations.glance import LOG_LINES, Glance, glance_at_all, journal, stop_all
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import is_paused, restart_reasons, serves

_POLL_SECONDS = 2
_SAY_SECONDS = 10

_GRACE = 60
"""Seconds that the head's agent gets to report by itself that its start timeout is over."""


@operation()
@explained
def ready(release: Release, failures: Mapping[str, float] | None = None) -> Commands:
    """The head has answered a real completion with this release.

    Shows the phase, the seconds and the engine's last line while it waits. When an engine
    dies, the log of the rank that died first is shown, the gang is stopped on all nodes,
    and the operation fails.

    + release: what the gang is to serve
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
    yield from change(called(_wait, release, failures or {}))


def _wait(state: State, host: Host, release: Release, failures: Mapping[str, float]) -> bool:
    began = said = time.monotonic()
    limit = release.content.recipe.start_timeout
    before = ""
    while True:
        looks = glance_at_all(state, host, release)
        seconds = time.monotonic() - began
        if died := _died(looks, release, failures):
            return _say_death(host, looks, died, release)
        if looks[0].serves(release):
            _say_served(host, release, seconds)
            return True
        if seconds > limit + _GRACE:
            return _say_late(host, looks, limit, release)
        if looks[0].phase == "paused":
            logger.info(f"{host.print_prefix}{looks[0].status.get('detail')}; it serves at resume")
            return True
        phases = _phases(looks)
        if phases != before or time.monotonic() - said > _SAY_SECONDS:
            logger.info(f"{host.print_prefix}{seconds:4.0f} s  {phases}  {looks[0].line}")
            before, said = phases, time.monotonic()
        gevent.sleep(_POLL_SECONDS)


def _died(
    looks: list[Glance], release: Release, failures: Mapping[str, float]
) -> list[tuple[float, Glance]]:
    """Ranks whose engine has died in this run, each with the moment."""
    found = [(look, look.failure(release)) for look in looks]
    return [
        (failure["at"], look)
        for look, failure in found
        if failure and failure["at"] != failures.get(look.host.name)
    ]


def _phases(looks: list[Glance]) -> str:
    ranks = []
    for rank, look in enumerate(looks):
        detail = look.status.get("detail") if look.phase == "waiting" else ""
        ranks.append(f"rank {rank} {look.phase}" + (f" ({detail})" if detail else ""))
    return ", ".join(ranks)


def _say_served(host: Host, release: Release, seconds: float) -> None:
    url = api_url(host, release)
    model = serving.api(release.content.recipe).model
    logger.info(f"{host.print_prefix}serves {model} after {seconds:.0f} s: {url}")
    body = json.dumps({"model": model, "prompt": "Hello", "max_tokens": 16})
    headers = "-H 'Content-Type: application/json'"
    if "VLLM_API_KEY" in release.content.recipe.secrets:
        headers += ' -H "Authorization: Bearer $VLLM_API_KEY"'
    logger.info(f"{host.print_prefix}try: curl {url}/completions {headers} -d '{body}'")


def api_url(host: Host, release: Release) -> str:
    """Base URL of the head's API as the controller reaches it."""
    api = serving.api(release.content.recipe)
    name = api.address if api.address != "127.0.0.1" else host.data.get("ssh_hostname") or host.name
    return f"http://{name}:{api.port}/v1"


def _say_death(
    asking: Host, looks: list[Glance], died: list[tuple[float, Glance]], release: Release
) -> bool:
    look = min(died, key=lambda death: death[0])[1]
    failure = look.failure(release) or {}
    _show_log(asking, look, release)
    prefix = look.host.print_prefix
    logger.error(f"{prefix}rank {_rank(look, release)} is the first whose engine died:")
    logger.error(f"{prefix}  exit code {failure.get('code')}; {failure.get('detail', '')}")
    left = stop_all(looks, asking, release)
    stopped = f"the gang is stopped{' but on ' + ', '.join(left) if left else ' on all nodes'}"
    logger.error(f"{prefix}{stopped}; mend what the log says, and run the same command again")
    return False


def _say_late(asking: Host, looks: list[Glance], limit: int, release: Release) -> bool:
    late = next((look for look in looks if look.phase != "starting"), looks[0])
    _show_log(asking, late, release)
    prefix = late.host.print_prefix
    detail = late.status.get("detail") or "no completion"
    logger.error(f"{prefix}rank {_rank(late, release)}: not ready after {limit} s (start_timeout):")
    logger.error(f"{prefix}  {late.phase}: {detail}")
    logger.error(f"{prefix}the gang goes on trying; run the same command again to see how it is")
    return False


def _show_log(asking: Host, look: Glance, release: Release) -> None:
    unit = paths.unit(release.content.gang.name)
    prefix = look.host.print_prefix
    logger.error(f"{prefix}the last {LOG_LINES} lines of its log (journalctl -u {unit}):")
    for line in journal(asking, look, release):
        logger.error(f"{prefix}  {line}")


def _rank(look: Glance, release: Release) -> int:
    return release.content.gang.node(look.host.name).rank
