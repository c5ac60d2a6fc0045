"""The flags that an image's own ``vllm serve`` has, and what of a command line they contradict.

An image that is built here says them itself, at the end of its build
(``templates/images/shared/flags.py``), in the file :data:`PATH` inside the image.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pyinfra_vllm import flags
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.suggest import nearest
from pyinfra_vllm.validation import got

PATH = "/usr/share/pyinfra-vllm/flags.json"
"""Where the list is, inside the image."""

ENTRYPOINT = ("vllm", "serve")
"""The only command whose flags are known."""

_INT = re.compile(r"[+-]?\d+")
_OPTIMIZATION = re.compile(r"-O(\d|\..+|=.*)?")
_MOST_SHOWN = 12

Finding = tuple[int, str]
"""Index of a word, and what is wrong with it."""


class Flag(BaseModel):
    """``least`` to ``most`` words follow it; ``kind``: as what the parser reads a value."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    names: tuple[str, ...]
    least: int
    most: int
    choices: tuple[str, ...] = ()
    kind: Literal["int", "float", "json"] | None = None


class FlagList(BaseModel):
    """What one image said; ``vllm`` is its version."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    vllm: str
    flags: tuple[Flag, ...]

    @cached_property
    def by_name(self) -> dict[str, Flag]:
        """Every flag under each of its names."""
        return {name.replace("_", "-"): flag for flag in self.flags for name in flag.names}


def parse(text: str) -> FlagList:
    """The list in ``text``; UserError when it is none."""
    try:
        return FlagList.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise UserError(f"{PATH} of the image is not understood: {where}: {first['msg']}") from None


_HINTS = 50
"""Unknown flags that the nearest known one is searched for: a millisecond each."""


def findings(known: FlagList, words: Sequence[str]) -> Iterator[Finding]:
    """What the parser of the image would refuse in ``words``, which follow the model."""
    hints = _HINTS
    for one in flags.said(words):
        if _OPTIMIZATION.fullmatch(words[one.index].partition("=")[0]):
            continue
        name = one.flag.partition(".")[0]
        flag = known.by_name.get(name) or _by_beginning(known, name)
        if isinstance(flag, Flag):
            wrong = _dotted(flag, one) if "." in one.flag else _value(flag, one)
            yield from ((index, f"{name}: {text}") for index, text in wrong)
        elif flag:
            yield one.index, f"{name}: could be {_listed(flag, ' or ')}; write one of them in full"
        else:
            near = nearest(name, known.by_name) if hints > 0 else ()
            hints -= 1
            hint = f"; did you mean {near[0]}?" if near else ""
            yield one.index, f"{name}: the image's vLLM {known.vllm} has no such flag{hint}"


def _by_beginning(known: FlagList, name: str) -> Flag | list[str] | None:
    """argparse takes the beginning of a name, if only one flag begins so."""
    if not name.startswith("--") or name == "--":
        return None
    found = {full: flag for full, flag in known.by_name.items() if full.startswith(name)}
    if len({flag.names for flag in found.values()}) == 1:
        return next(iter(found.values()))
    return sorted(found) or None


def _dotted(flag: Flag, one: flags.Said) -> Iterator[Finding]:
    if flag.kind not in ("json", None) or flag.most == 0:
        yield one.index, f"takes no keys after a dot; it is {_kind_words(flag)}"


def _value(flag: Flag, one: flags.Said) -> Iterator[Finding]:
    values = one.values
    if len(values) < flag.least:
        yield one.index, f"expected {_kind_words(flag)}, got nothing"
    elif len(values) > flag.most:
        wanted = "no value" if flag.most == 0 else f"{flag.most} value"
        yield one.place(flag.most), f"expected {wanted}, got {got(' '.join(values))}"
    else:
        for number, value in enumerate(values):
            yield from ((one.place(number), text) for text in _one(flag, value))


def _one(flag: Flag, value: str) -> Iterator[str]:
    if value == "None" and value not in flag.choices:
        return
    if flag.choices and value not in flag.choices:
        near = nearest(value, flag.choices)
        hint = f"did you mean {near[0]}?" if near else f"one of {_listed(flag.choices)}"
        yield f"no such choice: {got(value)}; {hint}"
    elif flag.kind == "json":
        yield from _json(value)
    elif (flag.kind == "int" and not _INT.fullmatch(value.strip())) or (
        flag.kind == "float" and not _is_float(value)
    ):
        yield f"expected {_kind_words(flag)}, got {got(value)}"


def _json(value: str) -> Iterator[str]:
    try:
        json.loads(value)
    except ValueError as error:
        place = getattr(error, "pos", 0)
        around = value[max(0, place - 20) : place + 20]
        reason = getattr(error, "msg", str(error))
        yield f"broken JSON at character {place + 1}: {reason}, near {got(around)}"


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _kind_words(flag: Flag) -> str:
    if flag.most == 0:
        return "a flag without a value"
    if flag.choices:
        return f"one of {_listed(flag.choices)}"
    kinds = {"int": "a whole number", "float": "a number", "json": "JSON"}
    return kinds.get(flag.kind or "", "a value")


def _listed(choices: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(choices) - _MOST_SHOWN} more" if len(choices) > _MOST_SHOWN else ""
    return between.join(choices[:_MOST_SHOWN]) + more
