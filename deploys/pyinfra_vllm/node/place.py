"""Script for a node: place files so that each is either old or new, never half.

It is sent on standard input with a JSON document in place of ``ACTIONS`` and runs on
the node's own python (3.10 or newer) with the standard library only. Each action
writes beside its target, syncs, and switches by rename (rename(2) is atomic).
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ACTIONS: list[dict[str, Any]] = []


def main(actions: list[dict[str, Any]]) -> int:
    """Do all actions in order; stop at the first that fails, with one line that says where."""
    steps = {
        "tree": place_tree,
        "file": place_file,
        "link": place_link,
        "remove": remove,
        "secrets": place_secrets,
    }
    for action in actions:
        try:
            steps[action["do"]](Path(action["path"]), action)
        except (OSError, RuntimeError) as error:
            print(f"{action['path']}: {error}", file=sys.stderr)
            return 1
    return 0


def place_tree(directory: Path, action: dict[str, Any]) -> None:
    """A directory with exactly these files; a new one appears complete or not at all."""
    files = {entry["name"]: entry for entry in action["files"]}
    if directory.is_dir() and not directory.is_symlink():
        for name, entry in files.items():
            write(directory / name, entry)
        for stranger in {entry.name for entry in directory.iterdir()} - set(files):
            remove(directory / stranger, {})
        directory.chmod(0o755)
        os.chown(directory, os.geteuid(), os.getegid())
        return
    partial = directory.with_name(f".{directory.name}.partial")
    remove(partial, {})
    partial.mkdir(parents=True)
    partial.chmod(0o755)
    for name, entry in files.items():
        write(partial / name, entry)
    sync_directory(partial)
    remove(directory, {})
    partial.rename(directory)
    sync_directory(directory.parent)


def place_file(path: Path, action: dict[str, Any]) -> None:
    """One file; ``check`` is a command that must accept it before it is switched in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        raise RuntimeError("is a directory, and a file belongs here; move it away")
    write(path, action)


def write(path: Path, entry: dict[str, Any]) -> None:
    content = base64.b64decode(entry["base64"])
    partial = path.with_name(f".{path.name}.partial")
    remove(partial, {})
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        os.fchmod(stream.fileno(), entry["mode"])
        os.fchown(stream.fileno(), os.geteuid(), os.getegid())
        stream.flush()
        os.fsync(stream.fileno())
    try:
        check(partial, entry.get("check"))
    except RuntimeError:
        partial.unlink()
        raise
    if path.is_dir() and not path.is_symlink():
        remove(path, {})
    partial.replace(path)
    sync_directory(path.parent)


def check(path: Path, command: list[str] | None) -> None:
    if command is None:
        return
    argv = [str(path) if word == "{path}" else word for word in command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()[-5:]
        raise RuntimeError("not installed, it fails its own test here: " + " | ".join(lines))


def place_link(path: Path, action: dict[str, Any]) -> None:
    """A symbolic link, switched by rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    remove(partial, {})
    partial.symlink_to(action["target"])
    if path.is_dir() and not path.is_symlink():
        raise RuntimeError("is a directory, and a link belongs here; move it away")
    partial.replace(path)
    sync_directory(path.parent)


def place_secrets(path: Path, action: dict[str, Any]) -> None:
    """Values of variables that only root can read, with a random salt for hashes of them."""
    document: dict[str, Any] = {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        values = {**document["values"], **action["values"]}
    except (OSError, ValueError, KeyError, TypeError):
        # Nothing of it can be kept.
        document, values = {}, action["values"]
    document = {"salt": document.get("salt") or secrets.token_hex(16), "values": values}
    content = base64.b64encode(json.dumps(document).encode()).decode()
    place_file(path, {"base64": content, "mode": 0o600})


def remove(path: Path, _action: dict[str, Any]) -> None:
    """Remove whatever is there; what a link points to is never touched."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(ACTIONS))
