"""Files and folders: releases, the agent, composed models, local files."""

# ruff: noqa: PTH110, PTH112, PTH115, PTH116, PTH120, PTH208

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Iterable

from pyinfra_vllm.node.collect.parts import Document

TEXT_LIMIT = 64 * 1024


def files(paths: Iterable[str]) -> Document:
    """State of each path, with its text."""
    return {path: file_state(path, text=True) for path in paths}


def file_state(path: str, *, text: bool) -> Document:
    """Type, mode, owner, size, sha256 and, where allowed, text of one path (links not followed).

    Text is given for UTF-8 up to 64 KiB that everyone on the node may read: what is
    closed to others may hold secrets.
    """
    state = path_state(path)
    try:
        if state["type"] == "link":
            state["target"] = os.readlink(path)
        if state["type"] == "file":
            state["sha256"] = sha256(path)
            mode = int(state["mode"], 8)
            if text and state["size"] <= TEXT_LIMIT and mode & stat.S_IROTH:
                state["text"] = utf8(path)
    except FileNotFoundError:  # removed while we looked
        return path_state(path)
    return state


def utf8(path: str) -> str | None:
    """Text of a file, None when it is no UTF-8."""
    with open(path, "rb") as file:
        try:
            return file.read().decode("utf-8")
        except UnicodeDecodeError:
            return None


def path_state(path: str) -> Document:
    """What ``lstat`` tells; ``{"exists": False, "type": "missing"}`` when nothing is there."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"exists": False, "type": "missing"}
    return {
        "exists": True,
        "type": kind(status.st_mode),
        "mode": format(stat.S_IMODE(status.st_mode), "04o"),
        "owner": _name(status.st_uid, pwd.getpwuid),
        "group": _name(status.st_gid, grp.getgrgid),
        "size": status.st_size,
        "allocated": status.st_blocks * 512,
        "device": status.st_dev,
        "inode": status.st_ino,
        "links": status.st_nlink,
        "modified": status.st_mtime,
    }


def kind(mode: int) -> str:
    """The type of a path in one word."""
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "directory"
    return "file" if stat.S_ISREG(mode) else "other"


def sha256(path: str) -> str:
    """Hex digest of the content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def existing_ancestor(path: str) -> str:
    """The path itself, or the nearest folder above it that exists."""
    while path != os.path.dirname(path) and not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def read_text(path: str) -> str:
    """Text of a file of the kernel's; empty when it isn't there or may not be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def names_in(folder: str) -> list[str]:
    """Names in a folder, sorted; none when it isn't there or may not be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def local_files(paths: Iterable[str]) -> Document:
    """State of each path without reading its content (these are up to 100 GB each)."""
    return {path: path_state(path) for path in paths}


def composed(directories: Iterable[str]) -> Document:
    """Every entry below each directory; ``device`` is where it is, or would be made."""
    return {path: _composed(path) for path in directories}


def _composed(directory: str) -> Document:
    entries = {}
    for name, path in walk(directory):
        state = _link_state(path)
        if state:
            entries[name] = state
    return {
        "exists": os.path.isdir(directory),
        "device": os.stat(existing_ancestor(directory)).st_dev,
        "entries": entries,
    }


def _link_state(path: str) -> Document | None:
    """None for what was removed while we looked."""
    try:
        status = os.lstat(path)
        target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
    except FileNotFoundError:
        return None
    return {
        "type": kind(status.st_mode),
        "target": target,
        "device": status.st_dev,
        "inode": status.st_ino,
        "size": status.st_size,
    }


def walk(directory: str, prefix: str = "") -> Iterable[tuple[str, str]]:
    """(relative path, path) of all that is no folder below, sorted; nothing if absent."""
    try:
        found = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from walk(entry.path, f"{name}/")
        else:
            yield name, entry.path


def _name(number: int, look_up: object) -> str:
    try:
        name: str = look_up(number)[0]  # type: ignore[operator]
    except KeyError:
        return str(number)
    return name
