"""What our deploys put on the node: releases, the unit, the agent."""

# ruff: noqa: PTH115, PTH118, PTH119, PTH208

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Collection

from pyinfra_vllm.node.collect.files import (
    file_state,
    names_in,
    path_state,
    read_text,
    sha256,
)
from pyinfra_vllm.node.collect.parts import Document, Unavailable

DROP_IN_ROOTS = (
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/run/systemd/system",
    "/run/systemd/system.control",
)
"""Where operators, and ``systemctl set-property``, put drop-ins of one unit (systemd.unit(5))."""
UNIT_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "FragmentPath",
    "DropInPaths",
    "NeedDaemonReload",
    "MainPID",
    "NRestarts",
    "Result",
    "ExecMainStatus",
    "StatusText",
    "ActiveEnterTimestampMonotonic",
    "InvocationID",
    "ProtectSystem",
    "PrivateTmp",
)


def releases(root: str, gang: str, texts: Collection[str]) -> Document:
    """All releases of a gang, where ``current`` points, and every other entry of the folder.

    The text of files is given for ``current`` and the digests in ``texts``; when ``texts`` is
    empty, for all releases.
    """
    home = os.path.join(root, gang)
    folder = os.path.join(home, "releases")
    current = _target(os.path.join(home, "current"))
    wanted = {*texts, os.path.basename(current or "")}
    found, strangers = {}, []
    for name in _names(folder):
        path = os.path.join(folder, name)
        if is_digest(name) and path_state(path)["type"] == "directory":
            found[name] = _release(path, text=not texts or name in wanted)
        else:
            strangers.append(f"releases/{name}")
    return {
        "current": current,
        "releases": found,
        "strangers": strangers,
        "entries": {name: path_state(os.path.join(home, name)) for name in _names(home)},
    }


def is_digest(name: str) -> bool:
    """64 lower-case hexadecimal digits."""
    return len(name) == 64 and not set(name) - set("0123456789abcdef")


def _release(folder: str, *, text: bool) -> Document:
    state = path_state(folder)
    state["files"] = {
        name: file_state(os.path.join(folder, name), text=text) for name in _names(folder)
    }
    return state


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{link} is no link: {error.strerror}") from error


def agent(path: str, status_path: str) -> Document:
    """Digest of the installed agent and what the running one says of itself."""
    installed = path_state(path)["type"] == "file"
    return {
        "sha256": sha256(path) if installed else None,
        "mode": path_state(path).get("mode"),
        "status": _status(status_path),
    }


def _status(path: str) -> object:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise Unavailable(f"{path} is no JSON: {error}") from error


def unit(name: str) -> Document:
    """One look at a systemd unit."""
    try:
        done = subprocess.run(
            ["systemctl", "show", name, "--property", ",".join(UNIT_PROPERTIES)],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise Unavailable("systemd: not installed") from error
    if done.returncode:
        raise Unavailable(f"systemctl: {done.stderr.strip() or f'exit {done.returncode}'}")
    found = unit_state(dict(line.partition("=")[::2] for line in done.stdout.splitlines()))
    # Those that systemd hasn't read yet count: it will read them at the next reload.
    there = [path for root in DROP_IN_ROOTS for path in _drop_ins(f"{root}/{name}.d")]
    every = dict.fromkeys([*found["drop_ins"], *there])
    return {**found, "drop_in_keys": {path: drop_in_keys(path) for path in every}}


def _drop_ins(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in names_in(folder) if name.endswith(".conf")]


def drop_in_keys(path: str) -> list[str]:
    """Names of what a drop-in sets; its values may be secrets."""
    lines = (line.strip() for line in read_text(path).splitlines())
    said = (line.partition("=")[0].strip() for line in lines if line[:1] not in ("#", ";", "["))
    return sorted({key for key in said if key.isalnum()})


def unit_state(shown: dict[str, str]) -> Document:
    """The values of ``systemctl show`` as numbers, flags and lists."""
    entered = int(shown.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    return {
        "load": shown.get("LoadState", ""),
        "active": shown.get("ActiveState", ""),
        "sub": shown.get("SubState", ""),
        "enabled": shown.get("UnitFileState", ""),
        "path": shown.get("FragmentPath", ""),
        "drop_ins": shown.get("DropInPaths", "").split(),
        "needs_reload": shown.get("NeedDaemonReload") == "yes",
        "main_pid": int(shown.get("MainPID") or 0),
        "restarts": int(shown.get("NRestarts") or 0),
        "result": shown.get("Result", ""),
        "exit_status": int(shown.get("ExecMainStatus") or 0),
        "status_text": shown.get("StatusText", ""),
        "active_since": round(time.time() - time.monotonic() + entered) if entered else None,
        "invocation": shown.get("InvocationID", ""),
        "protect_system": shown.get("ProtectSystem", ""),
        "private_tmp": shown.get("PrivateTmp") == "yes",
    }
