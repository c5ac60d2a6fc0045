"""What dockerd says, asked over its socket.

Not through the ``docker`` client: that takes 50 ms a question and asks five times for what is
here two requests. Requests are HTTP/1.0, so that an answer ends where the connection ends and
needs no HTTP library (``http.client`` alone takes longer to import than dockerd to answer).
"""

# ruff: noqa: PTH110, PTH118

from __future__ import annotations

import json
import os
import socket
from typing import Any

from pyinfra_vllm.node.collect.parts import Unavailable

DEFAULT_SOCKET = "/var/run/docker.sock"


class Missing(Unavailable):
    """dockerd answered 404."""


def ask(path: str, timeout: float | None = None) -> Any:
    """GET a path of the Engine API; Missing for 404, Unavailable for everything else that fails.

    ``timeout`` in seconds (TimeoutError); None leaves it to the deadline of the part.
    """
    head, _, body = _exchange(path, timeout).partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    try:
        document = json.loads(body)
    except ValueError:
        document = {"message": body[:200].decode("utf-8", "replace")}
    if status == [b"200"]:
        return document
    reason = f"docker: {document.get('message')} (GET {path})"
    raise Missing(reason) if status == [b"404"] else Unavailable(reason)


def encoded(text: str) -> str:
    """``text`` for a path or an argument of the API, every byte as ``%XX``."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _exchange(path: str, timeout: float | None) -> bytes:
    address = socket_path()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(address)
        except PermissionError as error:
            raise Unavailable(
                f"docker: user {os.getuid()} may not use {address}; read the state as root (sudo)"
            ) from error
        except OSError as error:
            raise Unavailable(_absence(address)) from error
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def socket_path() -> str:
    """Where dockerd listens: DOCKER_HOST when it names a socket, else the usual place."""
    host = os.environ.get("DOCKER_HOST", "")
    return host[len("unix://") :] if host.startswith("unix://") else DEFAULT_SOCKET


def _absence(address: str) -> str:
    folders = os.environ.get("PATH", "").split(":")
    if not any(os.path.exists(os.path.join(folder, "docker")) for folder in folders if folder):
        return "docker: not installed"
    return f"docker: the daemon doesn't run (nobody listens at {address})"
