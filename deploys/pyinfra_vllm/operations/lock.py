"""The lock of a gang: one operator at a time changes it.

A deploy says once, in its body, that it changes a gang, and gives the lock back as its last
operation::

    lock.guard(state, host, gang="main", head="spark-0", deploy="rollback")
    …
    lock.released(name="Gang: lock given back")

Between the two, the first command of an operation made with :func:`changing` (instead of
``explained``) takes the lock on the head: when something is to be changed, and never in a dry
run. A deploy that finds nothing to change needs no lock, and no remote command for it. What was
known of the nodes is dropped with it, and the operation looks again: another operator may
have changed them in between.

While the run goes on, the lock is renewed. It is given back when pyinfra disconnects, so also
after a failure or ^C; of a controller that was killed it expires. A run that has lost its lock
fails at its next change. ``--data lock_wait=SECONDS`` waits for another's lock,
``--data break_lock=HOLDER`` takes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import gevent
from gevent.lock import RLock
from pyinfra import host, logger, state
from pyinfra.api import Host, State, StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.state import BaseStateCallback
from pyinfra.connectors.util import remove_any_sudo_askpass_file
from typing_extensions import ParamSpec

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import survey
from pyinfra_vllm.facts.reach import connector_arguments
from pyinfra_vllm.gang_lock import COMMAND, RENEW_EVERY, Lock
from pyinfra_vllm.operations.common import Commands, called, explained, silent

P = ParamSpec("P")

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


_GUARDS: WeakKeyDictionary[State, dict[str, Guard]] = WeakKeyDictionary()
"""Guards by the names of the hosts whose changes they guard."""


class _AtEnd(BaseStateCallback):
    @staticmethod
    def host_disconnect(state: State, host: Host) -> None:
        guard = _GUARDS.get(host.state, {}).get(host.name)
        if guard and guard.held:
            guard.release()
            remove_any_sudo_askpass_file(host)


def guard(state: State, host: Host, gang: str, head: str, deploy: str) -> None:
    """Changes that this deploy makes on ``host`` need the lock of ``gang``.

    To be called in the body of a deploy, for each host. ``head``: the inventory's name of the
    node that keeps the lock. ``deploy``: what is done, in a word or two, for other operators.
    """
    known = _GUARDS.get(host.state)
    if known is None:
        known = _GUARDS[host.state] = {}
        host.state.add_callback_handler(_AtEnd())
    found = next((one for one in known.values() if one._lock.gang == gang), None)
    if found is None:
        found = Guard(state.inventory.get_host(head), Lock(gang, deploy))
    known[host.name] = found


def of(asking: Host) -> Guard | None:
    """The guard of a host's changes, where its deploy has one."""
    return _GUARDS.get(asking.state, {}).get(asking.name)


def confirm(asking: Host) -> None:
    """UserError when this run has lost the lock; for what must not happen twice."""
    found = of(asking)
    if found and asking.state.is_executing:
        found.confirm()


def changing(function: Callable[P, Commands]) -> Callable[P, Commands]:
    """As ``explained``, for an operation whose commands need the gang's lock."""

    @wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> Generator[PyinfraCommand, None, None]:
        found = of(host)
        if found is None or not state.is_executing:
            yield from function(*args, **kwargs)
            return
        if not found.held:
            with silent(host):
                nothing = next(iter(function(*args, **kwargs)), None) is None
            if nothing:
                return
        found.take(host)
        yield from function(*args, **kwargs)

    return explained(locked)


@operation()
def released() -> Commands:
    """The gang's lock is given back, where this run has it."""
    found = of(host)
    if found and found.held:
        yield called(_give_back, found)


def _give_back(state: State, host: Host, found: Guard) -> bool:
    found.release()
    return True
