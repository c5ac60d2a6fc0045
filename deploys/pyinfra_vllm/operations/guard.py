"""One run's hold on the lock of a gang: taken on the head, renewed while the run goes on."""

from __future__ import annotations

import json
from typing import Any

import gevent
from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host, StringCommand

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.reach import connector_arguments
from pyinfra_vllm.gang_lock import COMMAND, RENEW_EVERY, Lock

_LOOK_EVERY = 2
_SECONDS = 20
"""A head that doesn't answer must not hang the run."""


class Guard:
    """The lock of one gang in one run."""

    def __init__(self, head: Host, lock: Lock) -> None:
        self._head, self._lock = head, lock
        self._one = RLock()
        self._arguments: dict[str, Any] = {}
        self._renewal: gevent.Greenlet | None = None
        self._lost = ""
        self.held = False

    @property
    def gang(self) -> str:
        """Whose lock it is."""
        return self._lock.gang

    def take(self, asking: Host) -> None:
        """Take the lock, or say with UserError who has it; nothing when this run has it."""
        with self._one:
            if not self.held:
                self._arguments = connector_arguments(asking.state, self._head, asking)
                try:
                    self._take(asking)
                except UserError as error:
                    self._lost = str(error)
                for one in asking.state.inventory:
                    survey.forget(asking.state, one)
            if self._lost:
                raise UserError(self._lost)

    def confirm(self) -> None:
        """UserError when the lock isn't this run's any more: asks the head."""
        with self._one:
            if self._renewal:
                self._say_again()
            if self._lost:
                raise UserError(self._lost)

    def release(self) -> None:
        """Give it back, if it is held. Whatever goes wrong: it expires."""
        with self._one:
            if not self.held:
                return
            self.held = False
            if self._renewal is None:
                return
            self._renewal.kill()
            try:
                self._ask(self._lock.releasing())
            except UserError as error:
                logger.warning(f"{error}; the lock expires by itself")

    def _take(self, asking: Host) -> None:
        self.held = True
        if not self._head.connected:
            logger.warning(f"{self._head.name} can't be reached: its lock is not taken")
            return
        wait, breaks = _seconds(asking), str(asking.data.get("break_lock") or "")
        said = False
        while True:
            answer = self._ask(self._lock.taking(breaks))
            if not answer.get("taken", True) and (gone := self._lock.gone(answer)):
                answer = self._ask(self._lock.taking(breaks, gone))
            if answer.get("taken", True):
                break
            if wait <= 0:
                self._lost = self._lock.refusal(answer)
                return
            if not said:
                logger.info(f"{self._head.print_prefix}{self._lock.waits(answer)}")
                said = True
            wait -= _LOOK_EVERY
            gevent.sleep(_LOOK_EVERY)
        self._renewal = gevent.spawn(self._renew)
        if text := self._lock.taken_from(answer):
            logger.warning(f"{self._head.print_prefix}{text}")

    def _renew(self) -> None:
        while not self._lost:
            gevent.sleep(RENEW_EVERY)
            with self._one:
                if self.held:
                    self._say_again()

    def _say_again(self) -> None:
        try:
            answer = self._ask(self._lock.renewing())
        except UserError:
            return  # the head is away for now; when it is back, it knows whose the lock is
        if not answer.get("kept", True):
            self._lost = self._lock.lost_to(answer)
            logger.error(f"{self._head.print_prefix}{self._lost}")

    def _ask(self, script: str) -> dict[str, Any]:
        """The head's answer; nothing from a stand-in for a node (``@fake``)."""
        arguments = {**self._arguments, "_stdin": script, "_timeout": _SECONDS}
        try:
            ok, output = self._head.run_shell_command(StringCommand(COMMAND), **arguments)
        except Exception as error:  # each connector has its own
            raise UserError(f"{self._head.name}: the lock can't be asked for: {error}") from None
        if not ok:
            said = output.stderr.strip() or "it doesn't answer"
            raise UserError(f"{self._head.name}: the lock can't be asked for: {said}")
        return dict(json.loads(output.stdout)) if output.stdout.strip() else {}


def _seconds(asking: Host) -> float:
    value = asking.data.get("lock_wait") or 0
    try:
        return float(str(value))
    except ValueError:
        raise UserError(f"lock_wait={value}: expected seconds, such as lock_wait=600") from None
