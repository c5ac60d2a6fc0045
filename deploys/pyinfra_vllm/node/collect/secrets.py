"""Command lines without the secrets in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
_LIMIT = 4096
_NAME = r"[\w.-]*(?:key|token|passw|passphrase|secret|credential|auth)[\w.-]*"
# `--max-num-batched-tokens 256` is no secret.
_COUNTS = re.compile(r"(?i)tokens$")
_OPTION = re.compile(rf"(?i)--?{_NAME}$")
_ASSIGNED = re.compile(rf"(?i)({_NAME})(=|[\"']?\s*:\s*[\"']?|\s+)([^\s\"',}}]+)")
_LOOKS_SECRET = re.compile(r"\b(?:hf_|sk-|ghp_|glpat-)[\w-]{8,}|(?<=://)[^/@\s]+(?=@)")


def masked(words: Iterable[str]) -> list[str]:
    """The words with the value of anything like a key, token or password as ``***``.

    Masks too much rather than too little: every word after such an option up to the next
    option, and assignments inside a word (``sh -c "API_KEY=… serve"``, JSON).
    """
    shown: list[str] = []
    hide = False
    for word in words:
        is_option = word.startswith("-")
        if hide and not is_option:
            shown.append(MASK)
            continue
        hide = bool(_OPTION.match(word)) and not _COUNTS.search(word)
        shown.append(_mask_inside(word)[:_LIMIT])
    return shown


def _mask_inside(word: str) -> str:
    return _LOOKS_SECRET.sub(MASK, _ASSIGNED.sub(_mask_value, word))


def _mask_value(found: re.Match[str]) -> str:
    name, between, value = found.groups()
    return f"{name}{between}{value if _COUNTS.search(name) else MASK}"
