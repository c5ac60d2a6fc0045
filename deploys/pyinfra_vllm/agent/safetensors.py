"""The header of a safetensors file: which tensor lies where. The tensors are not read.

Format: 8 bytes with the length of the header (little endian), the header (JSON), the
tensors; see https://github.com/huggingface/safetensors, README, "Format".
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LENGTH = 8
_LONGEST_HEADER = 100_000_000
"""The limit that the format's own library has."""


class MalformedError(ValueError):
    """No safetensors file; ``str()`` says why."""


@dataclass(frozen=True)
class Tensor:
    """``start`` and ``end``: its bytes in the file; ``rows``: its first dimension."""

    name: str
    rows: int
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """``raw``: the bytes before the first tensor; ``size``: how long the whole file must be."""

    raw: bytes
    tensors: tuple[Tensor, ...]
    size: int


def read(path: Path) -> Header:
    """The header of the file; MalformedError when it has none. OSError as it comes."""
    with path.open("rb") as file:
        return read_from(file.fileno())


def read_from(descriptor: int) -> Header:
    """The same of an open file, whose position stays."""
    first = os.pread(descriptor, _LENGTH, 0)
    length = int.from_bytes(first, "little")
    if len(first) < _LENGTH or not 2 <= length <= _LONGEST_HEADER:
        raise MalformedError("it doesn't begin with the length of a header")
    text = os.pread(descriptor, length, _LENGTH)
    if len(text) < length:
        raise MalformedError(f"it ends inside its header, after {_LENGTH + len(text)} bytes")
    try:
        table = json.loads(text)
        tensors = _tensors(table, _LENGTH + length)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MalformedError("its header is no table of tensors") from None
    end = max((tensor.end for tensor in tensors), default=_LENGTH + length)
    return Header(first + text, tensors, end)


def _tensors(table: dict[str, Any], begin: int) -> tuple[Tensor, ...]:
    found = []
    for name, entry in table.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        rows = entry["shape"][0] if entry["shape"] else 1
        if not all(isinstance(number, int) for number in (start, end, rows)):
            raise ValueError(name)
        if not 0 <= start <= end or rows < 0:
            raise ValueError(name)
        found.append(Tensor(name, rows, begin + start, begin + end))
    return tuple(sorted(found, key=lambda tensor: (tensor.start, tensor.name)))
