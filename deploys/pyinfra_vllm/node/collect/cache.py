"""Snapshots of models in a Hugging Face cache on the node."""

# ruff: noqa: PTH112, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import Any

from pyinfra_vllm.agent.whole import lacking_shards
from pyinfra_vllm.node.collect.files import names_in, walk
from pyinfra_vllm.node.collect.parts import Document

_SHARD = re.compile(rb'"([^"\\]+\.safetensors)"')


def snapshots(wanted: Iterable[Mapping[str, Any]]) -> list[Document]:
    """One answer for each ``{"hub", "repo", "revision"}``, in order."""
    return [snapshot(item["hub"], item["repo"], item["revision"]) for item in wanted]


def snapshot(hub: str, repo: str, revision: str | None) -> Document:
    """A snapshot and its files.

    ``revision`` is a commit, a ref such as ``main``, or None for ``main``. ``missing``
    names entries whose blob isn't there and shards that the snapshot lacks.
    """
    home = os.path.join(hub, "models--" + repo.replace("/", "--"))
    commit = _commit(home, revision)
    path = snapshot_folder(hub, repo, revision)
    exists = path is not None and os.path.isdir(path)
    entries = {name: _entry(file) for name, file in walk(path)} if path else {}
    lacking = [name for name, entry in entries.items() if entry["size"] is None]
    return {
        "hub": hub,
        "hub_exists": os.path.isdir(hub),
        "repo": repo,
        "asked": revision,
        "revision": commit,
        "path": path,
        "exists": exists,
        "entries": entries,
        "missing": sorted({*lacking, *_absent_shards(path, entries)} if path else lacking),
        "unfinished": _unfinished(os.path.join(home, "blobs")),
    }


def snapshot_folder(hub: str, repo: str, revision: str | None) -> str | None:
    """Where the snapshot lies, or would; None when no ref names a commit."""
    home = os.path.join(hub, "models--" + repo.replace("/", "--"))
    commit = _commit(home, revision)
    return os.path.join(home, "snapshots", commit) if commit else None


def _commit(home: str, revision: str | None) -> str | None:
    """The commit of a ref; a revision that is no ref is taken as a commit."""
    try:
        with open(os.path.join(home, "refs", revision or "main"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return revision


def _entry(path: str) -> Document:
    target = os.readlink(path) if os.path.islink(path) else None
    try:
        status = os.stat(path)
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
    except OSError:
        size = None
    blob = os.path.basename(target) if target and "/blobs/" in target else None
    return {"target": target, "blob": blob, "size": size}


def _unfinished(blobs: str) -> list[str]:
    """Downloads of any revision that did not end: hf writes ``BLOB.incomplete``."""
    names = set(names_in(blobs))
    found = {name: name.removesuffix(".incomplete") for name in names if "incomplete" in name}
    return sorted(name for name, blob in found.items() if blob.partition(".")[0] not in names)


def _absent_shards(path: str, entries: Mapping[str, Document]) -> set[str]:
    """Shards that an index, or the number of others, names and the snapshot doesn't have.

    Indexes reach 10 MB; their shard names are found by pattern, as parsing takes ten times longer.
    """
    absent = lacking_shards(entries)
    for name, entry in entries.items():
        if not name.endswith(".safetensors.index.json") or entry["size"] is None:
            continue
        with open(os.path.join(path, name), "rb") as file:
            shards = {shard.decode() for shard in _SHARD.findall(file.read())}
        folder = os.path.dirname(name)
        absent |= {os.path.join(folder, shard) for shard in shards} - set(entries)
    return absent
