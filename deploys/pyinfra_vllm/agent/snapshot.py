"""Look at the snapshots and local files of a composed model: are they there, are they whole?"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import content, whole
from .errors import Unmet
from .links import Link, LocalFile, Source

_CONFIGS = ("config.json", "params.json")


def entries(source: Source) -> tuple[str, ...]:
    """Relative paths of every file of the snapshot; Unmet when it is missing or not whole.

    A file that is a link counts as its target does: the cache's own links lead
    to ``blobs``, and one without its blob is a download that did not end.
    """
    root = Path(source.snapshot)
    if not root.is_dir():
        raise Unmet(_missing(source, root))
    found = files_below(root)
    if not found:
        raise Unmet(f"snapshot {root} is empty; {_fetch(source)}")
    dangling = [name for name in found if not (root / name).exists()]
    if dangling:
        raise Unmet(
            f"snapshot {root} is not complete: {_some(dangling)} without content; {_fetch(source)}"
        )
    cut = [f"{name} ({why})" for name in found if (why := content.wrong_size(root / name))]
    if cut:
        raise Unmet(f"snapshot {root} is not complete: {_some(cut)}; {_fetch(source)}")
    return found


def files_below(root: Path) -> tuple[str, ...]:
    """Relative paths of all files and links below ``root``, sorted; links are not followed."""
    found: list[str] = []
    pending = [(str(root), "")]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, f"{prefix}{entry.name}/"))
                else:
                    found.append(prefix + entry.name)
    return tuple(sorted(found))


def check_whole(plan: dict[str, Link], sources: Iterable[Source], dummy: bool = False) -> None:
    """Unmet when the composed model lacks its configuration, its weights or one of its shards.

    ``dummy``: the engine makes up its weights.
    """
    remedy = "; ".join(_fetch(source) for source in sources)
    if not dummy and not whole.has_weights(plan):
        raise Unmet(f"the composed model has no weights: the download did not end; {remedy}")
    numbered = sorted(whole.lacking_shards(plan))
    if numbered:
        raise Unmet(f"the composed model lacks {_some(numbered)}; {remedy}")
    if not any(name in plan for name in _CONFIGS) and not any(n.endswith(".gguf") for n in plan):
        raise Unmet(f"the composed model has no config.json: the download did not end; {remedy}")
    for name, link in plan.items():
        if not name.endswith(".index.json"):
            continue
        folder = name.rpartition("/")[0]
        shards = {f"{folder}/{shard}".lstrip("/") for shard in _shards(link.target)}
        lacking = sorted(shards - plan.keys())
        if lacking:
            raise Unmet(f"{name} names {_some(lacking)} that the model lacks; {remedy}")


def check_local(local: LocalFile) -> None:
    """Unmet when the local file can't be hard-linked because of what it is."""
    try:
        mode = os.lstat(local.host).st_mode
    except FileNotFoundError:
        raise Unmet(
            f"local file {local.host} is not on this node; make it (each rank has its own copy), "
            "or take it out of composed_model.local_files"
        ) from None
    if stat.S_ISLNK(mode):
        raise Unmet(
            f"local file {local.host} is a symlink to {os.path.realpath(local.host)}, and a hard "
            "link to it would be a link to the symlink; name the file itself in "
            "composed_model.local_files"
        )
    if not stat.S_ISREG(mode):
        raise Unmet(f"local file {local.host} is no regular file; name a file")


def _missing(source: Source, root: Path) -> str:
    hub = _hub(source)
    if not hub.is_dir():
        return f"Hugging Face cache {hub} is not there: is its file system mounted? (for {root})"
    if not any(hub.iterdir()):
        return f"Hugging Face cache {hub} is empty: is it mounted? If so, {_fetch(source)}"
    return f"{source.repo} at {source.revision} is not in {hub}; {_fetch(source)}"


def _hub(source: Source) -> Path:
    """HUB of HUB/models--ORG--NAME/snapshots/REVISION."""
    return Path(*Path(source.snapshot).parts[:-3])


def _fetch(source: Source) -> str:
    command = f"hf download {source.repo} --revision {source.revision}"
    return f"fetch it: HF_HUB_CACHE={_hub(source)} {command}"


def _shards(index: str) -> set[str]:
    try:
        weights = json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"]
        return {str(shard) for shard in weights.values()}
    except (ValueError, KeyError, AttributeError, TypeError):
        raise Unmet(f"{index} is no index of shards: fetch that file again") from None


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest
