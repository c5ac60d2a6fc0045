"""A Hugging Face cache on disk: blobs named by their hash, relative links, refs/main."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from pyinfra_vllm.lab.shell import write

_LARGE_SUFFIXES = (".safetensors",)


def write_snapshot(hub: Path, repo: str, files: Mapping[str, bytes]) -> Path:
    """Lay ``files`` as the snapshot that refs/main of ``repo`` names; returns its folder.

    Blob names as in huggingface_hub: sha256 for files that the hub keeps in
    LFS, git's own sha1 for the others. The revision is derived from the content.
    """
    folder = hub / ("models--" + repo.replace("/", "--"))
    names = {name: _blob_name(name, content) for name, content in sorted(files.items())}
    revision = hashlib.sha1(repr(names).encode()).hexdigest()
    snapshot = folder / "snapshots" / revision
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    snapshot.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        blob = folder / "blobs" / names[name]
        if not blob.exists():
            blob.write_bytes(content)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(blob, link.parent))
    write(folder / "refs" / "main", revision)
    return snapshot


def snapshot_of(hub: Path, repo: str) -> Path | None:
    """The snapshot that refs/main of ``repo`` names, or None."""
    folder = hub / ("models--" + repo.replace("/", "--"))
    ref = folder / "refs" / "main"
    snapshot = folder / "snapshots" / ref.read_text().strip() if ref.is_file() else None
    return snapshot if snapshot is not None and snapshot.is_dir() else None


def _blob_name(name: str, content: bytes) -> str:
    if name.endswith(_LARGE_SUFFIXES):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
