"""The compile caches: local to the node, and without the one that hangs a start."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import Unmet
from .launch import Launch

AUTOTUNE = "flashinfer_autotune_cache"
_DEPTH = 6


def folders(launch: Launch) -> list[Path]:
    """The folders that the agent makes for the engine to write into."""
    return [Path(mount.source) for mount in launch.mounts if mount.create]


def check_local(launch: Launch, mountinfo: Path = Path("/proc/self/mountinfo")) -> None:
    """Unmet when a cache lies on a file server: nodes that share one break each other's."""
    for folder in folders(launch):
        kind = file_system(folder, mountinfo)
        if kind.startswith(("nfs", "cifs", "smb", "fuse.sshfs")):
            raise Unmet(f"{folder} is on a file server ({kind}); compile caches must be local")


def file_system(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Type of the file system that ``path`` is on, "" when unknown; nothing on it is touched."""
    best, kind = "", ""
    for line in mountinfo.read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        inside = f"{path}/".startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def clear_autotune(launch: Launch) -> int:
    """Remove FlashInfer's autotune caches; how many there were.

    A start hangs when only some ranks find theirs (vllm-project/vllm#57423), so every
    rank removes its own before every start.
    """
    found = [place for root in folders(launch) for place in _named(root)]
    for place in found:
        shutil.rmtree(place)
    return len(found)


def _named(root: Path) -> list[Path]:
    found = []
    for folder, names, _ in os.walk(root):
        if AUTOTUNE in names:
            names.remove(AUTOTUNE)
            found.append(Path(folder, AUTOTUNE))
        if len(Path(folder).relative_to(root).parts) >= _DEPTH:
            names.clear()
    return found
