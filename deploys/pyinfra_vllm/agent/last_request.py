"""What the engine worked on last, from the lines that it has left. Pure."""

from __future__ import annotations

import re

PROBE = "?probe"
"""Marks the agent's own questions in the access log, where they would hide people's requests."""

_ACCESS = re.compile(r'"(?:GET|POST|PUT|DELETE) (/[^ "?]*)([^ "]*) HTTP')
_NOT_A_REQUEST = ("/health", "/metrics", "/v1/models", "/ping", "/version")
_AT_WORK = ("Dumping scheduler output", "Received request")
"""vLLM's words for what its ranks stepped when they died, and, with --enable-log-requests, got."""
_ID = re.compile(r"\b(chatcmpl|cmpl|resp|embd|score|rerank)-[0-9a-f]")
_PATHS = {
    "chatcmpl": "/v1/chat/completions",
    "cmpl": "/v1/completions",
    "resp": "/v1/responses",
    "embd": "/v1/embeddings",
    "score": "/score",
    "rerank": "/rerank",
}
_STRUCTURED = re.compile(r"structured_outputs=(?!None)")
_TOKENS = re.compile(r"prompt_token_ids_len=(\d+)")


def is_access(line: str) -> bool:
    """Whether a line of the log only says that a request was answered."""
    return _ACCESS.search(line) is not None


def last_request(lines: list[str]) -> str | None:
    """The kind of the last request: what was at work at the death, else the last one answered."""
    dumped = (_at_work(line) for line in reversed(lines) if _AT_WORK[0] in line)
    told = (_at_work(line) or _answered(line) for line in reversed(lines))
    return next(filter(None, dumped), None) or next(filter(None, told), None)


def _at_work(line: str) -> str | None:
    found = _ID.search(line) if any(words in line for words in _AT_WORK) else None
    if found is None:
        return None
    tokens = _TOKENS.search(line)
    parts = [
        _PATHS[found[1]],
        "structured output" if _STRUCTURED.search(line) else "",
        f"{tokens[1]} prompt tokens" if tokens else "",
    ]
    return ", ".join(filter(None, parts))


def _answered(line: str) -> str | None:
    found = _ACCESS.search(line)
    if found is None or found[2] == PROBE or found[1].startswith(_NOT_A_REQUEST):
        return None
    return found[1]
