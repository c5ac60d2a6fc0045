"""A glance at the ranks of a gang while it starts: what agents say, and the engines' last lines."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import gevent
from paramiko import SSHException
from pyinfra.api import Host, State, StringCommand

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.evidence import AGENT_LINE
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.operations.common import run

LOG_LINES = 50
"""Lines of the journal that are shown of a rank whose engine died."""

_LINE_LENGTH = 160


@dataclass(frozen=True)
class Glance:
    """One rank: its agent's status document and the engine's last line.

    Of the head also ``wanted``, and ``event``, the last of its history.
    """

    host: Host
    status: dict[str, Any]
    line: str
    wanted: dict[str, Any] = field(default_factory=dict)
    event: dict[str, Any] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        """The agent's phase, ``unknown`` when it can't be asked."""
        return str(self.status.get("phase") or "unknown")

    def failure(self, release: str) -> dict[str, Any] | None:
        """The last death of an engine of this release."""
        failure = self.status.get("last_failure")
        return failure if failure and failure.get("release") == release else None

    def serves(self, release: str) -> bool:
        """Whether this rank, the head, has answered a completion with this release."""
        return self.phase == "serving" and self.status.get("release") == release

    def without_service(self, release: str) -> tuple[float, float] | None:
        """Seconds without service before this release served, and those of the engine's start.

        None when nothing had served before.
        """
        known = self.event if self.event.get("event") == "serving" else {}
        without, engine = known.get("without"), known.get("engine")
        if known.get("release") != release or without is None or engine is None:
            return None
        return float(without), float(engine)


def glance_at_all(state: State, asking: Host, goal: Goal) -> list[Glance]:
    """All ranks in their order, at the same time; ``asking`` is the host whose operation runs.

    UserError when the head is lost meanwhile.
    """
    hosts = [state.inventory.get_host(name) for name in goal.nodes]
    jobs = [
        gevent.spawn(_try, member, asking, goal.gang, rank == 0)
        for rank, member in enumerate(hosts)
    ]
    gevent.joinall(jobs)
    looks: list[Glance | None] = [job.get() for job in jobs]
    if looks[0] is None:
        raise UserError(
            f"{hosts[0].name}, the head, doesn't answer any more; it decides alone what it serves: "
            "pyinfra-vllm status INVENTORY"
        )
    return [look or Glance(at, {}, "", {}, {}) for look, at in zip(looks, hosts, strict=True)]


def _try(member: Host, asking: Host, gang: str, leads: bool) -> Glance | None:
    """None of a node that is lost."""
    try:
        return _glance(member, asking, gang, leads)
    except (OSError, SSHException):
        return None


def _glance(member: Host, asking: Host, gang: str, leads: bool) -> Glance:
    command = (
        f"python3 {paths.AGENT} status {gang} | tr -d '\\n'; echo; "
        "journalctl --no-pager -q -o cat -n 40 "
        f"_SYSTEMD_INVOCATION_ID=$(systemctl show --value -p InvocationID {paths.unit(gang)}) "
        f"| grep -vE '{AGENT_LINE}' | tail -n 1"
    )
    if leads:  # read after the status: a head that serves has written its history before
        command += (
            f" | tr -d '\\n'; echo; cat {paths.wanted(gang)} 2>/dev/null | tr -d '\\n'; echo; "
            f"tail -n 1 {paths.history(gang)} 2>/dev/null"
        )
    ok, output = run(member, asking, StringCommand(command))
    lines = list(output.stdout_lines) if ok or leads else []
    status, line, wanted, event, *_ = [*lines, "", "", "", ""]
    return Glance(
        member,
        _document(status),
        line.strip()[:_LINE_LENGTH],
        _document(wanted),
        _document(event),
    )


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def journal(asking: Host, look: Glance, goal: Goal) -> list[str]:
    """The rank's last lines, up to the death of its engine if it died."""
    failure = look.failure(goal.release)
    until = f"--until=@{math.ceil(failure['at']) + 1} " if failure else ""
    unit = paths.unit(goal.gang)
    command = f"journalctl --no-pager -q -o cat -n {LOG_LINES} {until}-u {unit}"
    _, output = run(look.host, asking, StringCommand(command))
    return list(output.stdout_lines)
