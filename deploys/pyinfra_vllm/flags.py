"""Words of a ``vllm serve`` command line, read as vLLM's own parser reads them.

vLLM's parser (``vllm/utils/argparse_utils.py``) turns ``_`` into ``-`` in the name of a
flag, takes ``--flag=value`` and ``--flag value`` for the same, lets the last one win, and,
like every argparse parser, accepts the beginning of a name and short forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_SHORT = {
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-t": "--tensor-parallel-size",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-pcp": "--prefill-context-parallel-size",
    "-dcp": "--decode-context-parallel-size",
    "-dp": "--data-parallel-size",
}

_SHORTEST_BEGINNING = {
    "--nnodes": "--nn",
    "--node-rank": "--node",
    "--master-addr": "--master-a",
    "--master-port": "--master-p",
    "--headless": "--head",
    "--tensor-parallel-size": "--tensor",
    "--pipeline-parallel-size": "--pipe",
    "--distributed-executor-backend": "--distributed-e",
    "--served-model-name": "--served",
    "--host": "--hos",
    "--port": "--por",
    "--api-key": "--api-k",
    "--hf-token": "--hf-t",
    "--ssl-keyfile": "--ssl-keyf",
    "--ssl-certfile": "--ssl-cert",
}
"""Flags that the launcher must not miss, with the least that no other flag begins with."""

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_GLUED = re.compile(r"(-[nr])=?(\d+)")


@dataclass(frozen=True)
class Said:
    """One flag as it stands in a list of words."""

    index: int
    """Where it stands, from 0."""
    flag: str
    """Its canonical name."""
    values: tuple[str, ...]
    """What follows it: the part behind ``=``, or the words up to the next flag."""
    hangs: bool = False
    """Whether its value is in the same word, behind ``=``."""

    @property
    def value(self) -> str | None:
        """The first value, None for a flag that stands alone."""
        return self.values[0] if self.values else None

    def place(self, number: int) -> int:
        """Where the value with this number, from 0, stands; the flag itself where it has none."""
        return self.index if self.hangs or not self.values else self.index + 1 + number


def is_flag(word: str) -> bool:
    """Whether the parser takes ``word`` for a flag: not ``-``, ``-1`` or text with spaces."""
    if len(word) < 2 or not word.startswith("-") or _NEGATIVE_NUMBER.fullmatch(word):
        return False
    return not re.search(r"\s", word.partition("=")[0])


def split(word: str) -> tuple[str, str | None]:
    """``--max_num_seqs=4`` becomes ``("--max-num-seqs", "4")``; no ``=`` means None."""
    glued = _GLUED.fullmatch(word)
    if glued:
        return _SHORT[glued[1]], glued[2]
    name, equals, value = word.partition("=")
    return _full_name(name), value if equals else None


def canonical(flag: str) -> str:
    """The long, dashed name of ``flag``, without a value that hangs on it."""
    return split(flag)[0]


def said(args: Sequence[str]) -> tuple[Said, ...]:
    """Every flag in ``args``, in order."""
    return _said(tuple(args))


@lru_cache(maxsize=32)
def _said(args: tuple[str, ...]) -> tuple[Said, ...]:
    starts = [index for index, word in enumerate(args) if is_flag(word)]
    found = []
    for start, end in pairwise([*starts, len(args)]):
        name, hanging = split(args[start])
        following = tuple(args[start + 1 : end])
        if hanging is None:
            found.append(Said(start, name, following))
        else:
            found.append(Said(start, name, (hanging,), hangs=True))
    return tuple(found)


def all_of(args: Sequence[str], flag: str) -> tuple[Said, ...]:
    """Every place where ``args`` says ``flag``, however it is spelled."""
    wanted = canonical(flag)
    return tuple(one for one in said(args) if one.flag == wanted)


def has(args: Sequence[str], flag: str) -> bool:
    """Whether ``args`` says ``flag`` at all."""
    return bool(all_of(args, flag))


def value_of(args: Sequence[str], flag: str) -> str | None:
    """The value of ``flag``; the last one wins; None when it isn't there or stands alone."""
    places = all_of(args, flag)
    return places[-1].value if places else None


def without(args: Sequence[str], *names: str) -> tuple[str, ...]:
    """``args`` without the flags ``names`` and their values."""
    dropped: set[int] = set()
    for name in names:
        for one in all_of(args, name):
            hanging = split(args[one.index])[1] is not None
            dropped.update(range(one.index, one.index + 1 + (0 if hanging else len(one.values))))
    return tuple(word for index, word in enumerate(args) if index not in dropped)


def _full_name(name: str) -> str:
    if not name.startswith("--"):
        return _SHORT.get(name, name)
    head, dot, rest = name.partition(".")
    dashed = head.replace("_", "-")
    for full, shortest in _SHORTEST_BEGINNING.items():
        if dashed.startswith(shortest) and full.startswith(dashed):
            return full
    return dashed + dot + rest
