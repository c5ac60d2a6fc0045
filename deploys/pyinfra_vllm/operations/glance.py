"""A glance at the ranks of a gang while it starts: what agents say, and the engines' last lines."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import gevent
from pyinfra.api import Host, State, StringCommand

from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations.common import run
from pyinfra_vllm.release import Release

LOG_LINES = 50
"""Lines of the journal that are shown of a rank whose engine died."""

# What the agent says of itself in the journal, beside the engine's own lines.
_AGENT_LINE = "^(preparing|waiting|paused|starting|serving|failed|stopping|start [0-9]+): "
_LINE_LENGTH = 160


@dataclass(frozen=True)
class Glance:
    """One rank: its agent's status document and the engine's last line."""

    host: Host
    status: dict[str, Any]
    line: str

    @property
    def phase(self) -> str:
        """The agent's phase, ``unknown`` when it can't be asked."""
        return str(self.status.get("phase") or "unknown")

    def failure(self, release: Release) -> dict[str, Any] | None:
        """The last death of an engine of this release."""
        failure = self.status.get("last_failure")
        return failure if failure and failure.get("release") == release.digest else None

    def serves(self, release: Release) -> bool:
        """Whether this rank, the head, has answered a completion with this release."""
        return self.phase == "serving" and self.status.get("release") == release.digest


def glance_at_all(state: State, asking: Host, release: Release) -> list[Glance]:
    """All ranks in their order, at the same time; ``asking`` is the host whose operation runs."""
    hosts = [state.inventory.get_host(node.name) for node in release.content.gang.nodes]
    jobs = [gevent.spawn(_glance, member, asking, release) for member in hosts]
    gevent.joinall(jobs)
    return [job.get() for job in jobs]


def _glance(member: Host, asking: Host, release: Release) -> Glance:
    gang = release.content.gang.name
    command = (
        f"python3 {paths.AGENT} status {gang} | tr -d '\\n'; echo; "
        "journalctl --no-pager -q -o cat -n 40 "
        f"_SYSTEMD_INVOCATION_ID=$(systemctl show --value -p InvocationID {paths.unit(gang)}) "
        f"| grep -vE '{_AGENT_LINE}' | tail -n 1"
    )
    ok, output = run(member, asking, StringCommand(command))
    lines = [*output.stdout_lines, "", ""]
    try:
        status = json.loads(lines[0]) if ok else {}
    except ValueError:
        status = {}
    return Glance(member, status or {}, lines[1].strip()[:_LINE_LENGTH])


def journal(asking: Host, look: Glance, release: Release) -> list[str]:
    """The rank's last lines, up to the death of its engine if it died."""
    failure = look.failure(release)
    until = f"--until=@{math.ceil(failure['at']) + 1} " if failure else ""
    unit = paths.unit(release.content.gang.name)
    command = f"journalctl --no-pager -q -o cat -n {LOG_LINES} {until}-u {unit}"
    _, output = run(look.host, asking, StringCommand(command))
    return list(output.stdout_lines)


def stop_all(looks: list[Glance], asking: Host, release: Release) -> list[str]:
    """Stop the unit on every node; names of those where that failed."""
    command = StringCommand("systemctl", "stop", paths.unit(release.content.gang.name))
    jobs = {look.host.name: gevent.spawn(run, look.host, asking, command) for look in looks}
    gevent.joinall(list(jobs.values()))
    return [name for name, job in jobs.items() if not job.get()[0]]
