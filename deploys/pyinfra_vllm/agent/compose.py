"""Build a composed model: beside, then by rename. Links only, never a copy."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from . import document, links, paths, snapshot
from .errors import Unmet
from .links import Link, Manifest


def compose(release: Path) -> str:
    """Bring the composed model of the release folder ``release`` to its manifest.

    Returns what was done, in words. A directory that is already right is left
    alone. One that is wrong is moved away and stays beside, because a running
    container may have it mounted; :func:`sweep` removes it.
    """
    manifest = links.parse(document.read(release / paths.MANIFEST))
    directory = Path(manifest.directory)
    root = paths.here(paths.COMPOSED_ROOT)
    if root not in directory.parents:
        raise Unmet(f"{release / paths.MANIFEST}: directory: {directory} is not below {root}")
    plan = plan_of(manifest)
    with _alone(directory.parent):
        if _is_right(directory, plan):
            return f"{directory}: {len(plan)} links, as they should be"
        build(directory, plan)
    return f"{directory}: {len(plan)} links made"


def plan_of(manifest: Manifest) -> dict[str, Link]:
    """The plan for what lies on this node; Unmet when a part of it is missing."""
    for local in manifest.local_files:
        snapshot.check_local(local)
    entries = {source.snapshot: snapshot.entries(source) for source in manifest.sources}
    plan = links.plan_links(manifest, entries)
    snapshot.check_whole(plan, manifest.sources)
    return plan


def sweep(root: Path, keep: str | None) -> None:
    """Remove every composed model below ``root`` but ``keep``.

    Only for when no container of the gang exists: removing a directory empties
    the mount of a container that runs on it, even after it was moved away.
    """
    if not root.is_dir():
        return
    with _alone(root):
        for path in root.iterdir():
            if path.name not in (keep, _LOCK):
                shutil.rmtree(path)


_LOCK = ".lock"


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_right(directory: Path, plan: dict[str, Link]) -> bool:
    if directory.is_symlink() or not directory.is_dir():
        return False
    if any(not folders and not files for _, folders, files in os.walk(directory)):
        return False
    return snapshot.files_below(directory) == tuple(plan) and all(
        _stands(directory / name, link) for name, link in plan.items()
    )


def _stands(path: Path, link: Link) -> bool:
    if link.kind == "symbolic":
        return path.is_symlink() and path.readlink() == Path(link.target)
    return not path.is_symlink() and path.samefile(link.target)


def build(directory: Path, plan: dict[str, Link]) -> None:
    """Make ``directory`` anew; one that is there is moved away and stays beside."""
    fresh = directory.with_name(f".{directory.name}.new")
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o755)
    try:
        for name, link in plan.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if link.kind == "symbolic":
                path.symlink_to(link.target)
            else:
                _hard_link(link.target, path)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if directory.exists() or directory.is_symlink():
        directory.rename(_free_name(directory))
    fresh.rename(directory)


def _free_name(directory: Path) -> Path:
    number = 1
    while (path := directory.with_name(f".{directory.name}.old-{number}")).exists():
        number += 1
    return path


def _hard_link(target: str, path: Path) -> None:
    try:
        os.link(target, path, follow_symlinks=False)
    except OSError as error:
        raise Unmet(_why_no_link(error, target, path.parent)) from None


def _why_no_link(error: OSError, target: str, folder: Path) -> str:
    if error.errno == errno.EXDEV:
        size = Path(target).stat().st_size / 1e9
        return (
            f"{target} ({size:.1f} GB) and {folder.parent} are on different file systems, so no "
            "hard link can join them, and a copy is never made; put both on one file system "
            "(is /tmp a tmpfs? `systemctl mask tmp.mount` and reboot; or move the local file)"
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        owner = Path(target).stat().st_uid
        return (
            f"{target} can't be hard-linked: {error.strerror}. fs.protected_hardlinks=1 allows it "
            f"only to the owner (uid {owner}; this is uid {os.geteuid()}) or who may write it: run "
            "the agent as root, or change owner or mode; or its file system has no hard links"
        )
    return f"{target} can't be hard-linked into {folder.parent}: {error.strerror}"
