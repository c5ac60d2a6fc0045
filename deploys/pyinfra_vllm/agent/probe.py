"""Ask the head for a completion. `/health` proves nothing: it stays 200 on a dead engine."""

from __future__ import annotations

import http.client
import json

from .events import Address
from .jobs import Say


def complete(api: Address, key: str | None, seconds: float) -> str | None:
    """None when the API answers with a completion of one token, else why it did not."""
    address, port, model = api
    body = json.dumps({"model": model, "prompt": "1 2 3", "max_tokens": 1, "temperature": 0})
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    connection = http.client.HTTPConnection(address, port, timeout=seconds)
    try:
        connection.request("POST", "/v1/completions", body, headers)
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as error:
        return (
            f"{address}:{port}: {getattr(error, 'strerror', None) or error or type(error).__name__}"
        )
    finally:
        connection.close()
    if response.status != 200:
        return f"{address}:{port}: HTTP {response.status}: {answer[:200].decode(errors='replace')}"
    return None if _has_choice(answer) else f"{address}:{port}: no completion in {answer[:200]!r}"


def _has_choice(answer: bytes) -> bool:
    try:
        return bool(json.loads(answer)["choices"])
    except (ValueError, KeyError, TypeError):
        return False


def ask(api: Address, key: str | None, seconds: float, say: Say) -> None:
    """The job: says ``{"completed": true}`` or ``{"completed": false, "detail": …}``."""
    detail = complete(api, key, seconds)
    say(completed=detail is None, detail=detail)
