"""sd_notify(3): tell systemd that the agent is ready, alive, and in which phase."""

from __future__ import annotations

import os
import socket


class Notifier:
    """Sends to ``NOTIFY_SOCKET``; does nothing when the agent was not started by systemd."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        usec = os.environ.get("WATCHDOG_USEC", "")
        self.interval = int(usec) / 2e6 if self._socket and usec.isdigit() else None
        """Seconds between two signs of life, or None when systemd asks for none."""

    def _send(self, message: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(message.encode(), self._address)
        except OSError as error:
            print(f"systemd was not told {message!r}: {error}", flush=True)

    def ready(self) -> None:
        """The agent runs; says nothing about the engine."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """The line that ``systemctl status`` shows."""
        self._send("STATUS=" + text.replace("\n", " ")[:400])

    def alive(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The agent is on its way down."""
        self._send("STOPPING=1")
