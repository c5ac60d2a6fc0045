"""What a lost connection looks like to pyinfra."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import cast

import pytest
from paramiko import SSHException, Transport
from pyinfra.api import Host

from pyinfra_vllm.facts.reach import notice_loss


def test_a_connection_that_its_node_ended_is_no_bare_end_of_file() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = Transport(ours)
        client = SimpleNamespace(get_transport=lambda: transport)
        host = cast(Host, SimpleNamespace(connector=SimpleNamespace(client=client)))
        for _ in range(2):
            notice_loss(host)
        transport.saved_exception = EOFError()
        with pytest.raises(SSHException, match="closed the connection"):
            raise transport.get_exception() or AssertionError("none")
        assert transport.get_exception() is None
        transport.saved_exception = OSError("kept")
        assert isinstance(transport.get_exception(), OSError)
