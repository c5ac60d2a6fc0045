"""A dockerd for tests: answers GET requests on a unix socket from a table, or never."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@contextmanager
def dockerd(address: Path, answers: Mapping[str, Any] | None) -> Iterator[str]:
    """Serve ``{path without arguments: document}``; other paths are 404. None: never answer.

    Yields the value of DOCKER_HOST.
    """
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(address))
        server.listen(64)
        if answers is not None:
            threading.Thread(target=_serve, args=(server, answers), daemon=True).start()
        yield f"unix://{address}"
        server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, answers: Mapping[str, Any]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            request = connection.recv(1 << 16).decode()
            path = unquote(request.split(" ")[1].partition("?")[0])
            status = "200 OK" if path in answers else "404 Not Found"
            body = json.dumps(answers.get(path, {"message": f"no such thing: {path}"}))
            connection.sendall(f"HTTP/1.0 {status}\r\nX: y\r\n\r\n{body}".encode())
