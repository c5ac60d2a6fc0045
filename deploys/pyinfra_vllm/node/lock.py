"""Script for a node: the lock of a gang, kept on its head.

It is sent on standard input with its request in place of ``REQUEST`` and needs the standard
library only. The lock is a file that says who changes the gang. Whoever has it renews it;
times are those of the node's own clock, which nobody can set. Prints one line of JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {}

_SHOWN = ("holder", "deploy", "since", "process")


def main(request: dict[str, Any]) -> int:
    """Do what is asked while no other such script looks at the locks of this node."""
    path = Path(request["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    steps = {"take": take, "renew": renew, "release": release}
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        answer = steps[request["do"]](path, request)
    finally:
        os.close(descriptor)
    print(json.dumps(answer), flush=True)
    return 0


def take(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """``taken``, with what became of the holder before; else the holder and the lock's age."""
    known, now = read(path), clock()
    shown = {key: known[key] for key in _SHOWN if key in known} if known else {}
    if known and known["token"] != request["token"]:
        quiet, age = now - known["renewed"], now - known["taken"]
        shown = {**shown, "quiet": quiet, "age": age}
        if known["holder"] == request["break"]:
            shown["ended"] = "broken"
        elif request["gone"] and known.get("process") == request["gone"]:
            shown["ended"] = "gone"
        elif 0 <= quiet < request["expires"]:
            return {"taken": False, **shown}
        else:
            shown["ended"] = "expired"
    write(path, {**request["document"], "token": request["token"], "taken": now, "renewed": now})
    return {"taken": True, **shown}


def renew(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """``kept``, or who has the lock instead: nobody, after a boot of the node."""
    known = read(path)
    if known is None or known["token"] != request["token"]:
        return {"kept": False, "holder": known["holder"] if known else ""}
    write(path, {**known, "renewed": clock()})
    return {"kept": True}


def release(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Give it back; the lock of another stays."""
    known = read(path)
    ours = known is not None and known["token"] == request["token"]
    if ours:
        path.unlink()
    return {"released": ours}


def read(path: Path) -> dict[str, Any] | None:
    """The lock; None when there is none, or none that can be read."""
    try:
        known = dict(json.loads(path.read_text(encoding="utf-8")))
        fields = ("holder", "deploy", "since", "token", "taken", "renewed")
        return known if set(fields) <= set(known) else None
    except (OSError, ValueError, TypeError):
        return None


def write(path: Path, document: dict[str, Any]) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    fresh.replace(path)


def clock() -> float:
    """Seconds since the boot of the node, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
