"""What the local copies of Engram shards lack, judged as the agent judges them before a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyinfra_vllm.node.collect.cache import snapshot_folder
from pyinfra_vllm.node.collect.parts import Document


def copies(wanted: Iterable[Mapping[str, Any]]) -> Document:
    """``{"refused": why not, "good": what was seen}`` of each copy that is there as a plain file.

    ``wanted``: ``{"host", "sources", "rank", "parallel_size", "first_rows"}`` of each.
    """
    return {item["host"]: _verdict(item) for item in wanted if _can_be_judged(item)}


def _can_be_judged(item: Mapping[str, Any]) -> bool:
    path = Path(item["host"])
    there = path.is_file() and not path.is_symlink()
    return there and all(_snapshot(source) for source in item["sources"])


def _verdict(item: Mapping[str, Any]) -> Document:
    # The agent's modules come along only when there is something to judge.
    from pyinfra_vllm.agent import engram
    from pyinfra_vllm.agent.shares import Share

    share = Share(item["rank"], item["parallel_size"], dict(item["first_rows"]))
    try:
        verdict = engram.judge(Path(item["host"]), _shard(item), share)
    except OSError as error:
        return {"refused": [f"{error.filename}: {error.strerror}"], "good": ""}
    return {"refused": list(verdict.refused), "good": verdict.good}


def _shard(item: Mapping[str, Any]) -> Path | None:
    """What the copy stands for: of several sources the last one that has it wins."""
    folders = (_snapshot(source) for source in reversed(item["sources"]))
    found = (folder / Path(item["host"]).name for folder in folders if folder)
    return next((path for path in found if path.is_file()), None)


def _snapshot(source: Mapping[str, Any]) -> Path | None:
    folder = snapshot_folder(source["hub"], source["repo"], source["revision"])
    return Path(folder) if folder and Path(folder).is_dir() else None
