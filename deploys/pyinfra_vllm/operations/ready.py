"""Operation: the gang serves; it ends when the head has answered a completion."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import gevent
from pyinfra import logger
from pyinfra.api import FunctionCommand, Host, State, StringCommand, operation

from pyinfra_vllm import serving
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import serves
from pyinfra_vllm.operations.common import Commands, change, explained, look_at_gang, run, this_node
from pyinfra_vllm.release import Release

_POLL_SECONDS = 2
_SAY_SECONDS = 10
_LOG_LINES = 50


@operation()
@explained
def ready(release: Release) -> Commands:
    """The head has answered a real completion with this release.

    Shows the phase, the seconds and the engine's last line while it waits. When an engine
    dies, the log of the rank that died first is shown and the operation fails.

    + release: what the gang is to serve
    """
    if this_node(release).rank != 0 or serves(release, look_at_gang(release)):
        return
    yield from change(FunctionCommand(_wait, (release,), {}))


@dataclass(frozen=True)
class _Look:
    """One glance at a rank: its agent's status and the engine's last line."""

    host: Host
    status: dict[str, Any]
    line: str

    def failure(self, release: Release) -> dict[str, Any] | None:
        failure = self.status.get("last_failure")
        return failure if failure and failure.get("release") == release.digest else None


def _wait(state: State, host: Host, release: Release) -> bool:
    began = said = time.monotonic()
    limit = release.content.recipe.start_timeout
    before = ""
    while True:
        looks = _look_at_all(state, host, release)
        seconds = time.monotonic() - began
        if died := [look for look in looks if look.failure(release)]:
            return _say_death(host, _first(died, release), release)
        head = looks[0]
        if head.status.get("phase") == "serving" and head.status.get("release") == release.digest:
            _say_served(host, release, seconds)
            return True
        if seconds > limit:
            return _say_late(host, looks, limit, release)
        phases = _phases(looks)
        if phases != before or time.monotonic() - said > _SAY_SECONDS:
            logger.info(f"{host.print_prefix}{seconds:4.0f} s  {phases}  {head.line}")
            before, said = phases, time.monotonic()
        gevent.sleep(_POLL_SECONDS)


def _look_at_all(state: State, asking: Host, release: Release) -> list[_Look]:
    hosts = [state.inventory.get_host(node.name) for node in release.content.gang.nodes]
    jobs = [gevent.spawn(_glance, member, asking, release) for member in hosts]
    gevent.joinall(jobs)
    return [job.get() for job in jobs]


def _glance(member: Host, asking: Host, release: Release) -> _Look:
    gang = release.content.gang.name
    command = (
        f"python3 {paths.AGENT} status {gang} | tr -d '\\n'; echo; "
        f"journalctl --no-pager -q -o cat -n 1 -u {paths.unit(gang)}"
    )
    ok, output = run(member, asking, StringCommand(command))
    lines = [*output.stdout_lines, "", ""]
    try:
        status = json.loads(lines[0]) if ok else {}
    except ValueError:
        status = {}
    return _Look(member, status or {}, lines[1].strip()[:160])


def _phases(looks: list[_Look]) -> str:
    ranks = []
    for rank, look in enumerate(looks):
        phase = look.status.get("phase", "unknown")
        detail = look.status.get("detail") if phase == "waiting" else ""
        ranks.append(f"rank {rank} {phase}" + (f" ({detail})" if detail else ""))
    return ", ".join(ranks)


def _say_served(host: Host, release: Release, seconds: float) -> None:
    url = api_url(host, release)
    model = serving.api(release.content.recipe).model
    logger.info(f"{host.print_prefix}serves {model} after {seconds:.0f} s: {url}")
    body = json.dumps({"model": model, "prompt": "Hello", "max_tokens": 16})
    json_type = "-H 'Content-Type: application/json'"
    logger.info(f"{host.print_prefix}try: curl {url}/completions {json_type} -d '{body}'")


def api_url(host: Host, release: Release) -> str:
    """Base URL of the head's API as the controller reaches it."""
    api = serving.api(release.content.recipe)
    name = api.address if api.address != "127.0.0.1" else host.data.get("ssh_hostname") or host.name
    return f"http://{name}:{api.port}/v1"


def _first(died: list[_Look], release: Release) -> _Look:
    return min(died, key=lambda look: (look.failure(release) or {}).get("at", 0.0))


def _say_death(asking: Host, look: _Look, release: Release) -> bool:
    failure = look.failure(release) or {}
    _show_log(
        asking,
        look,
        f"its engine died with exit code {failure.get('code')}: {failure.get('detail', '')}",
        release,
    )
    return False


def _say_late(asking: Host, looks: list[_Look], limit: int, release: Release) -> bool:
    late = next((look for look in looks if look.status.get("phase") == "waiting"), looks[0])
    detail = late.status.get("detail") or "no completion"
    _show_log(asking, late, f"not ready after {limit} s (start_timeout): {detail}", release)
    return False


def _show_log(asking: Host, look: _Look, reason: str, release: Release) -> None:
    unit = paths.unit(release.content.gang.name)
    rank = release.content.gang.node(look.host.name).rank
    command = f"journalctl --no-pager -q -o cat -n {_LOG_LINES} -u {unit}"
    _, output = run(look.host, asking, StringCommand(command))
    logger.error(f"{look.host.print_prefix}rank {rank} is the first that failed: {reason}")
    logger.error(f"{look.host.print_prefix}its last {_LOG_LINES} lines (journalctl -u {unit}):")
    for line in output.stdout_lines:
        logger.error(f"{look.host.print_prefix}  {line}")
