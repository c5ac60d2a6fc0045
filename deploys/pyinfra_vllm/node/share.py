"""Script for a node: send one image to several others at once, from one ``docker save``.

Standard library only; it runs as a transient unit. The image goes through memory, not
through a file: each piece that ``docker save`` gives is sent to all who are connected. A
receiver says a token that nobody can guess; pieces carry their length, and the last one is
empty, so that a stream that was cut is never taken for a whole one.
"""

from __future__ import annotations

import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

REQUEST: dict[str, Any] = {}

_PIECE = 1 << 20
_AHEAD = 32
"""Pieces that a slow receiver may lag behind before all wait for it."""
_PATIENCE = 120.0
"""Seconds without a byte taken, after which a receiver is given up; without one, the offer."""


class Receiver:
    """One connected node: a thread that sends what is put into its queue."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._pieces: queue.Queue[bytes] = queue.Queue(_AHEAD)
        self.lost = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def give(self, piece: bytes) -> None:
        while not self.lost:
            try:
                self._pieces.put(piece, timeout=1)
                return
            except queue.Full:
                continue

    def end(self) -> None:
        self.give(b"")
        self._thread.join(_PATIENCE)
        self._link.close()

    def drop(self) -> None:
        """Close without the last, empty piece: the receiver sees that the stream was cut."""
        self.lost = True
        self._link.close()

    def _send(self) -> None:
        try:
            while True:
                piece = self._pieces.get()
                self._link.sendall(struct.pack("!I", len(piece)) + piece)
                if not piece:
                    return
        except OSError:
            self.lost = True


def main(request: dict[str, Any]) -> int:
    """Serve rounds until all who are wanted have the image, or nobody comes any more."""
    listener = socket.create_server((request["address"], request["port"]))
    wanted = int(request["receivers"])
    while wanted > 0:
        receivers = _gather(listener, request["token"], wanted, float(request["grace"]))
        if not receivers:
            return 1
        print(f"{len(receivers)} of {wanted} nodes receive", flush=True)
        wanted -= _send_all(request["image"], receivers)
    return 0


def _gather(listener: socket.socket, token: str, wanted: int, grace: float) -> list[Receiver]:
    """Those who connect: all that are wanted, or who came within ``grace`` seconds."""
    links: list[Receiver] = []
    until = time.monotonic() + _PATIENCE
    while len(links) < wanted:
        left = until - time.monotonic()
        if left <= 0:
            break
        listener.settimeout(left)
        try:
            link, _ = listener.accept()
            link.settimeout(5.0)
            said = link.makefile("rb").readline(200).decode(errors="replace").strip()
        except OSError:
            continue
        if said != token:
            link.close()
            continue
        link.settimeout(_PATIENCE)
        links.append(Receiver(link))
        until = min(until, time.monotonic() + grace) if len(links) == 1 else until
    return links


def _send_all(image: str, receivers: list[Receiver]) -> int:
    """How many got it whole; the others may come again."""
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as save:
        assert save.stdout is not None
        while piece := save.stdout.read(_PIECE):
            for receiver in receivers:
                receiver.give(piece)
            if all(receiver.lost for receiver in receivers):
                save.kill()
                break
    for receiver in receivers:
        receiver.end() if save.returncode == 0 else receiver.drop()
    return sum(1 for receiver in receivers if not receiver.lost)


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
