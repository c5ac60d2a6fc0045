"""The lock of a gang: who asks for it, and what is said to whoever doesn't get it. Pure."""

from __future__ import annotations

import datetime
import getpass
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyinfra_vllm import run_process
from pyinfra_vllm.agent import paths
from pyinfra_vllm.node_script import filled

EXPIRES = 120
"""Seconds after which a lock that nobody renewed is nobody's."""

RENEW_EVERY = 30
"""Seconds between two renewals."""

COMMAND = "python3 - pyinfra-vllm.lock.v1"

_SCRIPT = Path(__file__).parent / "node" / "lock.py"
_SLOT = "REQUEST: dict[str, Any] = {}\n"


def me() -> str:
    """This run, as others are told who holds a lock: ``alice@laptop:4711``."""
    return f"{getpass.getuser()}@{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True)
class Lock:
    """One run's claim to a gang. ``deploy``: what it does, for people."""

    gang: str
    deploy: str
    holder: str = field(default_factory=me)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    process: Mapping[str, Any] | None = field(default_factory=run_process.mine)

    def taking(self, breaks: str = "", gone: Mapping[str, Any] | None = None) -> str:
        """Script that takes the lock, from the holder ``breaks`` too if it is still theirs.

        ``gone``: a process that has ended; what it held is nobody's.
        """
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        document: dict[str, Any] = {
            "schema": 1,
            "holder": self.holder,
            "deploy": self.deploy,
            "since": now,
        }
        if self.process:
            document["process"] = self.process
        request = {"document": document, "break": breaks, "gone": gone, "expires": EXPIRES}
        return self._script("take", request)

    def renewing(self) -> str:
        """Script that says that this run goes on."""
        return self._script("renew", {})

    def releasing(self) -> str:
        """Script that gives the lock back."""
        return self._script("release", {})

    def _script(self, step: str, request: Mapping[str, Any]) -> str:
        path = paths.lock(self.gang)
        document = {"do": step, "path": path, "token": self.token, **request}
        return filled(_SCRIPT, _SLOT, "REQUEST", document)

    def refusal(self, answer: Mapping[str, Any]) -> str:
        """Who has it, since when, and what can be done."""
        return (
            f"gang {self.gang} is being changed by {_whose(answer)}, "
            f"for {_minutes(answer['age'])}, last heard of {answer['quiet']:.0f} s ago; "
            "nothing was changed. Wait for it: --data lock_wait=SECONDS; or, if that run can't "
            f"be going on: --data break_lock={answer['holder']}"
        )

    def gone(self, answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The process that holds the lock, when it was one of this machine and has ended."""
        process = answer.get("process")
        return process if isinstance(process, dict) and run_process.is_gone(process) else None

    def waits(self, answer: Mapping[str, Any]) -> str:
        """What is said when the wait begins."""
        return f"gang {self.gang} is being changed by {_whose(answer)}; waiting for it"

    def taken_from(self, answer: Mapping[str, Any]) -> str | None:
        """What is said when it was somebody's; None when it was free."""
        if answer.get("ended") == "broken":
            return f"the lock of {_whose(answer)} is broken, as asked for"
        if answer.get("ended") == "gone":
            return (
                f"the lock of {_whose(answer)} is taken over: that run was a process of this "
                "machine, and has ended without giving it back"
            )
        if answer.get("ended") == "expired":
            quiet = _minutes(answer["quiet"])
            return f"the lock of {_whose(answer)} has expired: nobody renewed it for {quiet}"
        return None

    def lost_to(self, answer: Mapping[str, Any]) -> str:
        """Why this run may change nothing more."""
        whose = f"{answer['holder']} has it" if answer.get("holder") else "it is gone"
        return (
            f"this run has lost the lock of gang {self.gang} ({whose}), and changes nothing more; "
            "see what the other one does, then run the same command again"
        )


def _whose(answer: Mapping[str, Any]) -> str:
    return f"{answer['holder']} ({answer['deploy']}, since {answer['since']})"


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"
