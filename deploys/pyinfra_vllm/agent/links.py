"""The plan of a composed model: which link stands where. Pure: the controller shows it too."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .document import Document, check_schema
from .errors import Unmet
from .shares import Share, share_of


@dataclass(frozen=True)
class Link:
    """``symbolic``: its text is ``target``; ``hard``: it is the inode of ``target``; ``copy``:
    it has the content of ``target``."""

    kind: Literal["symbolic", "hard", "copy"]
    target: str


@dataclass(frozen=True)
class Source:
    """A snapshot of a Hugging Face cache. ``override``: it wins over the sources before it."""

    repo: str
    revision: str
    snapshot: str
    override: bool = False


@dataclass(frozen=True)
class LocalFile:
    """A file of the node and its name in the composed model. ``copy``: it may be copied."""

    host: str
    name: str
    copy: bool = False


@dataclass(frozen=True)
class Manifest:
    """``model.manifest`` of a release. ``share`` None: local shards are not proven."""

    directory: str
    sources: tuple[Source, ...]
    local_files: tuple[LocalFile, ...]
    share: Share | None = None


def parse(manifest: Document) -> Manifest:
    """The manifest that the document describes; Unmet names the first key that is wrong."""
    check_schema(manifest)
    return Manifest(
        directory=manifest.path_of("directory"),
        sources=tuple(
            Source(
                item.text("repo"),
                item.text("revision"),
                item.path_of("snapshot"),
                item.has("override") and item.flag("override"),
            )
            for item in manifest.tables("sources")
        ),
        local_files=tuple(
            LocalFile(
                item.path_of("host"), item.text("name"), item.has("copy") and item.flag("copy")
            )
            for item in manifest.tables("local_files")
        ),
        share=share_of(manifest.table("engram")) if manifest.has("engram") else None,
    )


def plan_links(
    manifest: Manifest | Mapping[str, Any], entries: Mapping[str, Iterable[str]]
) -> dict[str, Link]:
    """Every link of the composed model by its path inside it, sorted.

    ``manifest`` is the manifest or its JSON document; ``entries`` gives the
    relative paths of the files of each snapshot, by the snapshot's path.
    Unmet when two sources have one entry and the later doesn't override, or when a name
    would leave the directory.
    """
    if not isinstance(manifest, Manifest):
        manifest = parse(Document("model.manifest", dict(manifest)))
    plan = _sources(manifest, entries)
    hard: dict[str, str] = {}
    for local in manifest.local_files:
        if local.name in hard:
            raise Unmet(f"local files {hard[local.name]} and {local.host} have one name")
        hard[local.name] = local.host
        if "/" in local.name:
            raise Unmet(f"local file {local.host}: its name {local.name!r} must be without '/'")
        plan[_inside(local.name)] = Link("copy" if local.copy else "hard", local.host)
    _refuse_file_as_folder(plan)
    return dict(sorted(plan.items()))


def replaced(manifest: Manifest, entries: Mapping[str, Iterable[str]]) -> dict[str, str | None]:
    """What stands behind each local file, by its name: path in a snapshot, None for nothing."""
    behind: dict[str, str | None] = dict.fromkeys(local.name for local in manifest.local_files)
    for source in manifest.sources:
        for name in behind.keys() & set(entries[source.snapshot]):
            behind[name] = f"{source.snapshot}/{name}"
    return behind


def _sources(manifest: Manifest, entries: Mapping[str, Iterable[str]]) -> dict[str, Link]:
    plan: dict[str, Link] = {}
    owner: dict[str, str] = {}
    for source in manifest.sources:
        for entry in sorted(entries[source.snapshot]):
            name = _inside(entry)
            if name in plan and not source.override:
                raise Unmet(
                    f"{name} is in {owner[name]} and in {source.repo}: say which one it is to be "
                    f"(override = true at the source {source.repo}, and its files win), or leave "
                    "one of them out of composed_model.sources"
                )
            plan[name] = Link("symbolic", f"{source.snapshot}/{name}")
            owner[name] = source.repo
    return plan


def _inside(entry: str) -> str:
    parts = entry.split("/")
    if not entry or entry.startswith("/") or {"", ".", ".."} & set(parts):
        raise Unmet(
            f"entry {entry!r} would leave the composed model; expected a plain relative path"
        )
    return entry


def _refuse_file_as_folder(plan: Mapping[str, Link]) -> None:
    for name in plan:
        folder = posixpath.dirname(name)
        while folder:
            if folder in plan:
                raise Unmet(f"{folder} is a file, and {name} needs it to be a folder")
            folder = posixpath.dirname(folder)
