"""Signals, heard by a selector through a wakeup descriptor: nothing is done in a handler."""

from __future__ import annotations

import selectors
import signal
import socket


class Signals:
    """``stop_asked``: whether systemd or an operator wants the unit down."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.reader, self._writer = socket.socketpair()
        self.stop_asked = False
        self.reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector.register(self.reader, selectors.EVENT_READ)

    def _on_stop(self, *_: object) -> None:
        self.stop_asked = True

    def heard(self) -> None:
        """Empty the descriptor."""
        self.reader.recv(4096)

    def take_stop(self) -> bool:
        """Whether a stop was asked for since the last call."""
        asked, self.stop_asked = self.stop_asked, False
        return asked
