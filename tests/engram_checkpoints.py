"""Small checkpoints with the structure of one with Engram tables, and copies of their shards.

The last two shards hold a table of rows (256 bytes of weights and 8 of scales each) beside
ordinary tensors, as DeepSeek-V4.1-Flash has them. No byte of a tensor is zero, so that
what reads as zero was never written.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyinfra_vllm.lab import hub

REPO = "tiny-random/engram"
LAYERS = (1, 14)
SHARDS = tuple(f"model-{number:05}-of-00004.safetensors" for number in range(1, 5))
_NOT_ZERO = bytes(range(1, 256)) + b"\1"


@dataclass(frozen=True)
class Part:
    """A tensor: its name, rows and bytes a row."""

    name: str
    rows: int
    width: int

    @property
    def size(self) -> int:
        return self.rows * self.width


def table_parts(layer: int, rows: int) -> tuple[Part, ...]:
    """The tensors of a shard with an Engram table: two of them ordinary."""
    prefix = f"layers.{layer}.engram."
    return (
        Part(f"{prefix}embed.weight", rows, 256),
        Part(f"{prefix}wkv.weight", 96, 130),
        Part(f"{prefix}embed.scale", rows, 8),
        Part(f"{prefix}q_weight", 32, 7),
    )


def shard(parts: Iterable[Part], padding: int = 0, seed: int = 0) -> bytes:
    """A safetensors file with the tensors in this order and spaces at the end of its header."""
    header, content, at = {}, b"", 0
    noise = random.Random(seed)
    for part in parts:
        header[part.name] = {
            "dtype": "U8",
            "shape": [part.rows, part.width],
            "data_offsets": [at, at + part.size],
        }
        content += noise.randbytes(part.size).translate(_NOT_ZERO)
        at += part.size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode() + b" " * padding
    return len(text).to_bytes(8, "little") + text + content


def files(rows: int = 100_000, seed: int = 0) -> dict[str, bytes]:
    """The whole checkpoint: two plain shards, two with tables, index, configuration."""
    plain = [(Part(f"layers.{n}.mlp.weight", 64, 64),) for n in range(2)]
    tables = [table_parts(layer, rows + layer) for layer in LAYERS]
    parts = dict(zip(SHARDS, [*plain, *tables], strict=True))
    shards = {name: shard(parts[name], seed=seed + n) for n, name in enumerate(SHARDS)}
    weights = {part.name: name for name in SHARDS for part in parts[name]}
    index = {"metadata": {}, "weight_map": weights}
    return {
        "config.json": json.dumps({"model_type": "engram"}).encode(),
        "model.safetensors.index.json": json.dumps(index).encode(),
        **shards,
    }


def lay(folder: Path, rows: int = 100_000, seed: int = 0) -> Path:
    """The checkpoint in the Hugging Face cache ``folder``; path of its snapshot."""
    return hub.write_snapshot(folder, REPO, files(rows, seed))


def tensors(content: bytes) -> dict[str, tuple[int, int, int]]:
    """Name -> (rows, first byte, byte after the last), read by other means than the agent's."""
    length = int.from_bytes(content[:8], "little")
    header: Mapping[str, dict[str, list[int]]] = json.loads(content[8 : 8 + length])
    return {
        name: (e["shape"][0], 8 + length + e["data_offsets"][0], 8 + length + e["data_offsets"][1])
        for name, e in header.items()
        if name != "__metadata__"
    }


def even(rows: int, size: int, rank: int) -> tuple[int, int]:
    """Rows of a rank, said in another way than the agent says it."""
    each = rows // size + (1 if rows % size else 0)
    return min(rows, each * rank), min(rows, each * rank + each)


def needed(content: bytes, size: int, rank: int) -> list[tuple[int, int]]:
    """Bytes that a copy for this rank must have."""
    found = [(0, 8 + int.from_bytes(content[:8], "little"))]
    for name, (rows, start, end) in tensors(content).items():
        if ".engram.embed." in name:
            width = (end - start) // rows
            first, last = even(rows, size, rank)
            found.append((start + first * width, start + last * width))
        else:
            found.append((start, end))
    return found


def write_copy(path: Path, content: bytes, wanted: Iterable[tuple[int, int]]) -> Path:
    """A file of full size in which only these ranges were written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(len(content))
        for start, end in wanted:
            os.pwrite(file.fileno(), content[start:end], start)
    return path


def reads_right(path: Path, content: bytes, size: int, rank: int) -> bool:
    """The oracle: what this rank reads from the copy is, byte for byte, what the shard has."""
    copy = path.read_bytes()
    return len(copy) == len(content) and all(
        copy[start:end] == content[start:end] for start, end in needed(content, size, rank)
    )
