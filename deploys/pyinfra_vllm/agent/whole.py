"""Whether a model's files are all there, as far as their names tell. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".tensors", ".distcp")
_NUMBERED = re.compile(r"(.*-)(\d{5})(-of-)(\d{5})(\.\w+)")
"""``model-00001-of-00048.safetensors``"""


def lacking_shards(names: Iterable[str]) -> set[str]:
    """Names that are missing where others say how many there are.

    A download that was cut may lack the index, which lists them, too.
    """
    names = set(names)
    lacking = set()
    for match in filter(None, map(_NUMBERED.fullmatch, names)):
        before, _, middle, count, end = match.groups()
        lacking |= {f"{before}{n:05}{middle}{count}{end}" for n in range(1, int(count) + 1)}
    return lacking - names


def has_weights(names: Iterable[str]) -> bool:
    """Whether one of the files can be a model's weights."""
    return any(name.endswith(_WEIGHTS) for name in names)
