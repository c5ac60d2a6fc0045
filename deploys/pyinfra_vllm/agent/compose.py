"""Build a composed model: beside, then by rename; and prove its local shards."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import copies, document, engram, hard_links, launch, links, paths, reach, snapshot
from .copies import Tell
from .errors import Unmet
from .links import Link, Manifest


@dataclass(frozen=True)
class Plan:
    """``links`` by name; ``behind``: what each local file replaces, None for nothing."""

    links: dict[str, Link]
    behind: dict[str, str | None]


def _silent(_: str) -> None:
    """Tells nobody."""


def compose(release: Path, tell: Tell = _silent) -> str:
    """Bring the composed model of the release folder ``release`` to its manifest.

    Returns what was done and proven, in words; ``tell`` hears of long work. Unmet when a part
    is missing or a local shard lacks what this rank reads. A directory that is already
    right is left alone. One that is wrong is moved away and stays beside, because a
    running container may have it mounted; :func:`sweep` removes it.
    """
    manifest = manifest_of(release)
    directory = Path(manifest.directory)
    started = launch.load(release) if (release / paths.LAUNCH).exists() else None
    plan = plan_of(manifest, dummy=started is not None and "dummy" in started.argv)
    if started is not None:
        reach.check(plan.links, started.mounts)
    proven = prove(manifest, plan)
    with _alone(directory.parent):
        if is_right(directory, plan.links):
            done = "links, as they should be"
        else:
            build(directory, plan.links, tell)
            done = "links made"
    return "\n".join([f"{directory}: {len(plan.links)} {done}", *proven])


def manifest_of(release: Path) -> Manifest:
    """The manifest of a release; Unmet when its directory is not where composed models lie."""
    manifest = links.parse(document.read(release / paths.MANIFEST))
    root = paths.here(paths.COMPOSED_ROOT)
    if root not in Path(manifest.directory).parents:
        raise Unmet(
            f"{release / paths.MANIFEST}: directory: {manifest.directory} is not below {root}"
        )
    return manifest


def plan_of(manifest: Manifest, dummy: bool = False) -> Plan:
    """The plan for what lies on this node; Unmet when a part of it is missing.

    ``dummy``: the engine makes up its weights.
    """
    for local in manifest.local_files:
        snapshot.check_local(local)
    entries = {source.snapshot: snapshot.entries(source) for source in manifest.sources}
    plan = links.plan_links(manifest, entries)
    snapshot.check_whole(plan, manifest.sources, dummy)
    return Plan(plan, links.replaced(manifest, entries))


def prove(manifest: Manifest, plan: Plan) -> list[str]:
    """What was seen in the local shards, a line each; Unmet names all that is wrong in them."""
    if manifest.share is None:
        return []
    verdicts = [
        engram.judge(Path(local.host), _path(plan.behind[local.name]), manifest.share)
        for local in manifest.local_files
        if local.name.endswith(".safetensors")
    ]
    refused = [line for verdict in verdicts if verdict.refused for line in verdict.lines]
    if refused:
        raise Unmet("\n".join(refused))
    return [line for verdict in verdicts for line in verdict.lines]


def _path(name: str | None) -> Path | None:
    return Path(name) if name is not None else None


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


def is_right(directory: Path, plan: Mapping[str, Link]) -> bool:
    """Whether the directory holds exactly the links of the plan."""
    if directory.is_symlink() or not directory.is_dir():
        return False
    if any(not folders and not files for _, folders, files in os.walk(directory)):
        return False
    return snapshot.files_below(directory) == tuple(plan) and all(
        _stands(directory / name, link) for name, link in plan.items()
    )


def _stands(path: Path, link: Link) -> bool:
    if link.kind == "symbolic":
        return path.is_symlink() and os.readlink(path) == link.target  # noqa: PTH115 (5,000 files)
    if link.kind == "copy":
        return copies.stands(path, link.target)
    return not path.is_symlink() and path.samefile(link.target)


def build(directory: Path, plan: Mapping[str, Link], tell: Tell = _silent) -> None:
    """Make ``directory`` anew; one that is there is moved away and stays beside."""
    fresh = directory.with_name(f".{directory.name}.new")
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o755)
    try:
        for folder in sorted({(fresh / name).parent for name in plan}):
            folder.mkdir(parents=True, exist_ok=True)
        for name, link in plan.items():
            _make(fresh / name, link, tell)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if directory.exists() or directory.is_symlink():
        directory.rename(_free_name(directory))
    fresh.rename(directory)


def _make(path: Path, link: Link, tell: Tell) -> None:
    if link.kind == "symbolic":
        path.symlink_to(link.target)
    elif link.kind == "copy":
        copies.make(link.target, path, tell)
    else:
        hard_links.make(link.target, path)


def _free_name(directory: Path) -> Path:
    number = 1
    while (path := directory.with_name(f".{directory.name}.old-{number}")).exists():
        number += 1
    return path
