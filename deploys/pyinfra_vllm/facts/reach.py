"""How commands reach a node while pyinfra is busy with another one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import gevent
from paramiko import SSHException, Transport
from pyinfra.api import Host, State
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments


def connector_arguments(state: State, host: Host, asking: Host) -> dict[str, Any]:
    """``_sudo`` and the like for a command on ``host``, wanted by the deploy on ``asking``.

    pyinfra knows the arguments of a deploy (``serve(_sudo=True)``) only on the host that it
    is preparing; the other members of the gang are reached in the same way, unless the
    inventory says something of its own for one of them.
    """
    own, _ = pop_global_arguments(state, host, {})
    arguments = {key: value for key, value in own.items() if key in CONNECTOR_ARGUMENT_KEYS}
    said = {**host.data.dict(), **asking.data.dict()}
    resolved: dict[str, Any] = dict(
        asking.current_op_global_arguments or asking.current_deploy_kwargs or {}
    )
    borrowed = {
        key: value
        for key, value in resolved.items()
        if key in arguments and key not in said and value is not None
    }
    return {**arguments, **borrowed}


SILENT = 50
"""Seconds without an answer after which a node counts as lost, whatever it is doing for us."""

_ANSWER = 30
"""Seconds of these that an answer may take."""

_KEEP_ALIVE = {
    "TCP_KEEPIDLE": SILENT - _ANSWER,
    "TCP_KEEPINTVL": _ANSWER // 3,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": SILENT * 1000,
}
"""Those of tcp(7) that this machine knows are set: not every system has all of them."""


def notice_loss(host: Host) -> None:
    """Let the connection end when its node is gone: a command that prints nothing would hang."""
    client = getattr(host.connector, "client", None)
    transport = client.get_transport() if client else None
    if transport is None:
        return
    if "get_exception" in vars(transport):
        return  # seen before
    transport.get_exception = partial(_reason, transport.get_exception)
    if isinstance(transport.sock, socket.socket):
        _let_tcp_watch(transport.sock)
    else:
        # Through a jump host, whose own connection lives on.
        gevent.spawn(_watch, transport)


def _let_tcp_watch(connection: socket.socket) -> None:
    with suppress(OSError):  # it is closed: the next command says so
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _watch(transport: Transport) -> None:
    """As ServerAliveInterval of ssh_config(5): any answer will do, that of a refusal too."""
    while transport.is_active():
        gevent.sleep(SILENT - _ANSWER)
        asked = gevent.spawn(transport.global_request, "keepalive@openssh.com")
        gevent.joinall([asked], timeout=_ANSWER)
        if not asked.ready():
            transport.close()
            asked.kill()


def _reason(of_transport: Callable[[], Exception | None]) -> Exception | None:
    """Why a connection ended, as what pyinfra takes for that.

    paramiko (transport.py, ``run``) keeps a bare EOFError when the other side is gone, and
    pyinfra ends the whole run with a traceback for it; it expects SSHException or OSError.
    """
    found = of_transport()
    return (
        SSHException("the node has closed the connection") if isinstance(found, EOFError) else found
    )
