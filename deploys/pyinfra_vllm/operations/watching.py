"""Watch a gang until its head has decided: it serves, went back, gave up. Nothing is changed.

The head decides alone; whoever watches may go away at any time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Literal

import gevent
from pyinfra import logger
from pyinfra.api import Host, State

from pyinfra_vllm.agent import paths, trial
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.operations.glance import LOG_LINES, Glance, glance_at_all, journal

_POLL_SECONDS = 2
_SAY_SECONDS = 10

_GRACE = 60
"""Seconds that the head gets to decide by itself when its time is up."""

Outcome = Literal["serving", "paused", "back", "failed"]


class Watch:
    """One waiting. ``failures``: node -> when its engine had died before; that is no news.

    ``stopped``: whether nobody wants to wait any longer.
    """

    def __init__(
        self,
        state: State,
        host: Host,
        goal: Goal,
        failures: Mapping[str, float],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stopped = stopped
        self._state = state
        self._host = host
        self._goal = goal
        self._known = dict(failures)
        self._shown = False
        self._began = self._said = time.monotonic()
        self._phases = ""

    def wait(self) -> Outcome:
        """How it went; everything that a person wants to know has been shown."""
        while True:
            looks = glance_at_all(self._state, self._host, self._goal)
            self._show_deaths(looks)
            outcome = self._outcome(looks)
            if outcome is not None:
                return outcome
            if self._stopped():
                return "failed"
            self._say_phases(looks)
            gevent.sleep(_POLL_SECONDS)

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _outcome(self, looks: list[Glance]) -> Outcome | None:
        head = looks[0]
        if head.serves(self._goal.release):
            self._say_served(head)
            return "serving"
        if head.wanted and head.wanted.get("release") != self._goal.release:
            return self._gone_back(looks)
        if head.phase == "paused":
            self._info(f"{head.status.get('detail')}; it serves at resume")
            return "paused"
        if head.phase == "failed" and str(head.status.get("detail")).startswith("gave up"):
            self._show_first(looks)
            self._error(f"{head.status.get('detail')}")
            return "failed"
        if self._is_late(head):
            self._show_late(looks)
            return "failed"
        return None

    def _is_late(self, head: Glance) -> bool:
        """A start that makes progress gets more time of the head; one that waits has no limit."""
        factor = trial.LONGEST if head.phase == "starting" else 1.0
        return self._seconds > self._goal.seconds * factor + _GRACE

    def _say_served(self, head: Glance) -> None:
        goal = self._goal
        url = api_url(self._host, goal)
        self._info(f"serves {goal.api.model} after {self._seconds:.0f} s: {url}")
        if times := head.without_service(goal.release):
            self._info(
                f"time without service: {times[0]:.1f} s; the bare engine start took "
                f"{times[1]:.1f} s of it"
            )
        body = json.dumps({"model": goal.api.model, "prompt": "Hello", "max_tokens": 16})
        headers = "-H 'Content-Type: application/json'"
        if goal.needs_key:
            headers += ' -H "Authorization: Bearer $VLLM_API_KEY"'
        self._info(f"try: curl {url}/completions {headers} -d '{body}'")

    def _gone_back(self, looks: list[Glance]) -> Outcome:
        wanted = looks[0].wanted
        to, back = str(wanted.get("release"))[:12], wanted.get("back") or {}
        if back.get("from") != self._goal.release:
            self._error(f"another release was asked for meanwhile: {to}")
            return "failed"
        if not self._shown and not str(back.get("why")).startswith("a rank lacks"):
            self._show_first(looks)
        self._error(f"the head goes back to {to}: {back.get('why')}")
        self._error(f"what the starts left is in {paths.evidence(self._goal.gang)} on each node")
        self._await_earlier(str(wanted.get("release")))
        return "back"

    def _await_earlier(self, release: str) -> None:
        began = time.monotonic()
        while time.monotonic() - began < self._goal.seconds + _GRACE:
            head = glance_at_all(self._state, self._host, self._goal)[0]
            if head.serves(release):
                times = head.without_service(release)
                seconds = f" after {times[0]:.0f} s" if times else ""
                self._error(f"rolled back to {release[:12]}, serving again{seconds}")
                return
            gevent.sleep(_POLL_SECONDS)
        self._error(f"{release[:12]} doesn't serve yet; the head goes on trying")

    def _show_deaths(self, looks: list[Glance]) -> None:
        """Every death that is news, and the log of the first of all."""
        found = [(look, look.failure(self._goal.release)) for look in looks]
        news = [
            (float(failure["at"]), rank, look, failure)
            for rank, (look, failure) in enumerate(found)
            if failure and failure["at"] != self._known.get(look.host.name)
        ]
        for at, rank, look, failure in sorted(news, key=lambda one: one[0]):
            self._known[look.host.name] = at
            if not self._shown:
                self._show_log(look)
            who = "the first whose engine died" if not self._shown else "one whose engine died"
            self._shown = True
            prefix = look.host.print_prefix
            logger.error(f"{prefix}rank {rank} is {who}:")
            logger.error(f"{prefix}  exit code {failure['code']}; {failure.get('detail', '')}")

    def _show_first(self, looks: list[Glance]) -> None:
        """The log of the rank that looks worst, if none was shown yet."""
        if not self._shown:
            self._show_log(next((look for look in looks if look.phase != "starting"), looks[0]))
            self._shown = True

    def _show_late(self, looks: list[Glance]) -> None:
        late = next((look for look in looks if look.phase != "starting"), looks[0])
        self._show_log(late)
        prefix, detail = late.host.print_prefix, late.status.get("detail") or "no completion"
        logger.error(f"{prefix}rank {looks.index(late)}: not ready after {self._seconds:.0f} s:")
        logger.error(f"{prefix}  {late.phase}: {detail}")
        logger.error(f"{prefix}the head goes on; run the same command again to see how it is")

    def _show_log(self, look: Glance) -> None:
        unit, prefix = paths.unit(self._goal.gang), look.host.print_prefix
        logger.error(f"{prefix}the last {LOG_LINES} lines of its log (journalctl -u {unit}):")
        for line in journal(self._host, look, self._goal):
            logger.error(f"{prefix}  {line}")

    def _say_phases(self, looks: list[Glance]) -> None:
        phases = _phases(looks)
        if phases != self._phases or time.monotonic() - self._said > _SAY_SECONDS:
            self._info(f"{self._seconds:4.0f} s  {phases}  {looks[0].line}")
            self._phases, self._said = phases, time.monotonic()

    def _info(self, text: str) -> None:
        logger.info(f"{self._host.print_prefix}{text}")

    def _error(self, text: str) -> None:
        logger.error(f"{self._host.print_prefix}{text}")


def _phases(looks: list[Glance]) -> str:
    ranks = []
    for rank, look in enumerate(looks):
        detail = look.status.get("detail") if look.phase == "waiting" else ""
        ranks.append(f"rank {rank} {look.phase}" + (f" ({detail})" if detail else ""))
    return ", ".join(ranks)


def api_url(host: Host, goal: Goal) -> str:
    """Base URL of the head's API as the controller reaches it."""
    api = goal.api
    name = api.address if api.address != "127.0.0.1" else host.data.get("ssh_hostname") or host.name
    return f"http://{name}:{api.port}/v1"
