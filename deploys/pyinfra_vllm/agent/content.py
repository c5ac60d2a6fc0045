"""Whether a file of a Hugging Face cache has the content that it must have, read as little."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from . import safetensors

_SMALL = 1 << 20
_GIT_SHA1 = re.compile(r"[0-9a-f]{40}")


def wrong_size(entry: Path) -> str | None:
    """Why the content can't be whole, None when nothing speaks against it.

    A shard says in its header how long it is. Of other files, the small JSON ones are compared
    with git's sha1, which names their blob: an engine reads these first.
    """
    if entry.name.endswith(".safetensors"):
        return _wrong_shard(entry)
    if not entry.is_symlink():
        return None
    name = entry.readlink().name
    if not _GIT_SHA1.fullmatch(name) or entry.suffix != ".json":
        return None
    size = entry.stat().st_size
    if size > _SMALL:
        return None
    data = entry.read_bytes()
    if hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == name:
        return None
    return f"{size} bytes that aren't those of its blob"


def _wrong_shard(entry: Path) -> str | None:
    size = entry.stat().st_size
    try:
        expected = safetensors.read(entry).size
    except safetensors.MalformedError as error:
        return f"{size} bytes; {error}"
    return None if size == expected else f"{size} bytes, its header says {expected}"


def blob_of(entry: Path | None) -> str | None:
    """sha256 of the content of a snapshot's large file: the cache names its blob so.

    None for a file that is not there, is no link into ``blobs``, or is small: those
    are named by git's sha1.
    """
    if entry is None or not entry.is_symlink():
        return None
    name = entry.readlink().name
    return name if re.fullmatch(r"[0-9a-f]{64}", name) else None
