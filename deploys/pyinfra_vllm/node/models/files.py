"""Files, snapshots and composed models. Modes are octal text (``0644``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyinfra_vllm.node.part import Model

FileType = Literal["file", "directory", "link", "other", "missing"]


class PathState(Model):
    """A path, links not followed. ``allocated`` is what is on disk of a sparse file."""

    exists: bool
    type: FileType
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    size: int = 0
    allocated: int = 0
    device: int = 0
    inode: int = 0
    links: int = 0
    modified: float = 0.0


class FileState(PathState):
    """``text`` only for UTF-8 up to 64 KiB that every user of the node may read."""

    sha256: str | None = None
    text: str | None = None
    target: str | None = None


class SnapshotEntry(Model):
    """``size`` None: the blob isn't there."""

    target: str | None = None
    blob: str | None = None
    size: int | None = None


class Snapshot(Model):
    """``revision`` is the commit, ``asked`` what was asked for, ``missing`` the files it lacks.

    ``unfinished``: downloads of the repository, of any revision, that did not end.
    """

    hub: str
    hub_exists: bool
    repo: str
    asked: str | None = None
    revision: str | None = None
    path: str | None = None
    exists: bool
    entries: dict[str, SnapshotEntry] = Field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.exists and bool(self.entries) and not self.missing


class Copy(Model):
    """A local copy of an Engram shard. ``refused``: what this rank would read wrong, and why."""

    refused: tuple[str, ...] = ()
    good: str = ""


class ComposedEntry(Model):
    type: FileType
    target: str | None = None
    device: int
    inode: int
    size: int = 0


class Composed(Model):
    """A composed model; ``device`` is where it is, or would be made."""

    exists: bool
    device: int
    entries: dict[str, ComposedEntry] = Field(default_factory=dict)
