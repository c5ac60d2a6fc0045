"""Whether the other nodes' fabric addresses answer, and over which address of this node."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Iterable

from pyinfra_vllm.node.collect.parts import Document

_SECONDS = 4.0  # time enough for two more SYNs where one is lost


def peers(addresses: Iterable[str], port: int) -> Document:
    """For each address: ``open`` or ``refused`` (both: it answers), else why not.

    ``source`` is the address of this node that the kernel chooses to reach it.
    """
    waiting: dict[int, tuple[str, socket.socket]] = {}
    found: Document = {}
    poll = select.poll()
    for address in addresses:
        connection = socket.socket(_family(address))
        connection.setblocking(False)
        code = connection.connect_ex((address, port))
        found[address] = {"source": source_of(address), "answer": answer_of(code)}
        if code == errno.EINPROGRESS:
            waiting[connection.fileno()] = (address, connection)
            poll.register(connection, select.POLLOUT)
    until = time.monotonic() + _SECONDS
    while waiting and (left := until - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            poll.unregister(descriptor)
            address, connection = waiting.pop(descriptor)
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            found[address]["answer"] = answer_of(code)
    return found


def answer_of(code: int) -> str:
    """An errno of connect(2) in words; EINPROGRESS is no answer yet."""
    if code == 0:
        return "open"
    if code == errno.ECONNREFUSED:
        return "refused"
    return "no answer" if code == errno.EINPROGRESS else os.strerror(code)


def source_of(address: str) -> str | None:
    """The kernel's choice of address; None without a route. Nothing is sent."""
    with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except OSError:
            return None
        source: str = probe.getsockname()[0]
    return source


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
