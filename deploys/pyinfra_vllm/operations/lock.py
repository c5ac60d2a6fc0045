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
after a failure or ^C; of a controller that was killed it expires, and a run of the same user on
the same machine, which can see that the process is gone, takes it over at once. A run that has
lost its lock fails at its next change. ``--data lock_wait=SECONDS`` waits for another's lock,
``--data break_lock=HOLDER`` takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from weakref import WeakKeyDictionary

from pyinfra import host, state
from pyinfra.api import Host, State, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.state import BaseStateCallback
from pyinfra.connectors.util import remove_any_sudo_askpass_file
from typing_extensions import ParamSpec

from pyinfra_vllm.gang_lock import Lock
from pyinfra_vllm.operations.common import Commands, called, explained, silent
from pyinfra_vllm.operations.guard import Guard

P = ParamSpec("P")

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
    found = next((one for one in known.values() if one.gang == gang), None)
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
