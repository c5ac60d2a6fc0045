"""Command lines without the secrets in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
_LIMIT = 1024
# `--tokenizer-mode` and `--max-num-batched-tokens` are no secrets. The look-behind keeps the
# search linear: a name is tried from its first letter only.
_NAME = (
    r"(?<![\w.-])(?:[\w.-]*"
    r"(?:key|token(?!iz)|passw|passphrase|secret|credential|auth(?!ors?\b))[\w.-]*)(?<!tokens)"
)
_OPTION = re.compile(rf"(?i)-{_NAME}$".replace(r"(?<![\w.-])", ""))
_ASSIGNED = re.compile(rf"(?i){_NAME}[\"']?[=:\s]")
_LOOKS_SECRET = re.compile(r"\b(?:hf_|sk-|ghp_|glpat-)[\w-]{8,}|(?<=://)[^/@\s]+(?=@)")


def masked(words: Iterable[str]) -> list[str]:
    """The words with the value of anything like a key, token or password as ``***``.

    Masks too much rather than too little: after such an option the next word, whatever it is,
    and all up to the next option; after such a name inside a word (``sh -c "API_KEY=… serve"``,
    JSON, a header) the rest of that word.
    """
    shown: list[str] = []
    first, hide = False, False
    for word in words:
        word = word[:_LIMIT]
        if first or (hide and not word.startswith("-")):
            shown.append(MASK)
            first = False
            continue
        first = hide = bool(_OPTION.match(word))
        shown.append(_mask_inside(word))
    return shown


def _mask_inside(word: str) -> str:
    assigned = _ASSIGNED.search(word)
    if assigned:
        word = word[: assigned.end()] + MASK
    return _LOOKS_SECRET.sub(MASK, word)
