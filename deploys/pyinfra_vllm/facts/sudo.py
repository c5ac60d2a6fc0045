"""The password of sudo, asked once for all nodes; pyinfra alone asks for each node by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from getpass import getpass
from typing import Any
from weakref import WeakKeyDictionary

import gevent
from pyinfra.api import Host, State, StringCommand

from pyinfra_vllm.facts.refusal import Refusal

_KNOWN = "prompted_sudo_password"
"""Where pyinfra keeps the password that it has asked for."""

_ASKED: WeakKeyDictionary[State, set[str]] = WeakKeyDictionary()


def ask_once(hosts: Iterable[Host], arguments_of: Callable[[Host], dict[str, Any]]) -> None:
    """Ask at the terminal when sudo on any of the hosts wants a password that nobody gave.

    Raises Refusal when there is no terminal.
    """
    new = [host for host in hosts if host.name not in _ASKED.setdefault(host.state, set())]
    for host in new:
        _ASKED[host.state].add(host.name)
    jobs = {
        host: gevent.spawn(_wants_password, host, arguments)
        for host in new
        if _is_open(host, arguments := arguments_of(host))
    }
    gevent.joinall(list(jobs.values()))
    wanting = [host for host, job in jobs.items() if job.value]
    if wanting:
        _give(wanting)


def _is_open(host: Host, arguments: dict[str, Any]) -> bool:
    """Whether sudo is used and no password is known."""
    given = arguments.get("_sudo_password") or host.connector_data.get(_KNOWN)
    return bool(arguments.get("_sudo")) and not given


def _wants_password(host: Host, arguments: dict[str, Any]) -> bool:
    plain = {key: value for key, value in arguments.items() if not key.startswith("_sudo")}
    # sudo's own words must not be seen: pyinfra would take them for its own question.
    test = StringCommand("sudo -n true 2>/dev/null || echo closed")
    _, output = host.run_shell_command(test, **plain)
    return output.stdout.strip() == "closed"


def _give(hosts: list[Host]) -> None:
    names = ", ".join(host.name for host in hosts)
    if not sys.stdin.isatty():
        raise Refusal(
            f"{names}: sudo wants a password, and there is no terminal to ask for it; add "
            "--same-sudo-password, or set _sudo_password in the inventory (from the environment)"
        )
    password = getpass(f"sudo password (for {names}): ")
    for host in hosts:
        host.connector_data[_KNOWN] = password
