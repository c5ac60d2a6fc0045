"""Ask the head for a completion. `/health` proves nothing: it stays 200 on a dead engine."""

from __future__ import annotations

import http.client
import json

from . import memory, pace
from .events import Address
from .jobs import Say
from .last_request import PROBE


def complete(api: Address, key: str | None, seconds: float) -> str | None:
    """None when the API answers with a completion of one token, else why it did not."""
    address, port, model = api
    body = json.dumps({"model": model, "prompt": "1 2 3", "max_tokens": 1, "temperature": 0})
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    connection = http.client.HTTPConnection(address, port, timeout=seconds)
    try:
        connection.request("POST", f"/v1/completions{PROBE}", body, headers)
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


WATCH_SECONDS = 60.0
"""How long a serving engine may take for one token before the question counts as failed."""
_METRICS_SECONDS = 10.0
_SIGNS = (
    "vllm:prompt_tokens", "vllm:generation_tokens", "vllm:iteration_tokens",
    "vllm:kv_cache_usage", "vllm:gpu_cache_usage", "vllm:num_preemptions",
)  # fmt: skip
"""What only a working engine moves. During a long prefill it is the KV gauge alone."""
_REQUESTS = ("vllm:num_requests_running", "vllm:num_requests_waiting")


def watch(api: Address, key: str | None, press: bool, lent: bool, say: Say) -> None:
    """The job: says ``{"sample": …}``. A busy engine isn't asked, unless ``press``.

    ``lent``: nor is an idle one, which somebody measures.
    """
    text = metrics(api)
    signs, busy = read_metrics(text) if text is not None else (None, False)
    detail, answered = "", None
    excused = lent and not busy and signs is not None
    if not excused and (press or not busy):
        say(step="asks for a completion")
        detail = complete(api, key, pace.seconds(WATCH_SECONDS)) or ""
        answered = not detail
        text = metrics(api) if answered else None
        signs = read_metrics(text)[0] if text is not None else signs
    sample = {"signs": signs, "busy": busy, "answered": answered, "watts": watts()}
    sample["excused"] = excused
    say(sample={**sample, "detail": detail})


def read_metrics(text: str) -> tuple[str, bool]:
    """The engine's own counters as one string, and whether it has requests."""
    lines = [line for line in text.splitlines() if line.startswith("vllm:")]
    signs = [line for line in lines if line.startswith(_SIGNS) and "_created" not in line]
    busy = any(float(line.rpartition(" ")[2]) > 0 for line in lines if line.startswith(_REQUESTS))
    return "\n".join(signs), busy


def metrics(api: Address) -> str | None:
    """The text of ``/metrics``, None when it isn't there in time."""
    connection = http.client.HTTPConnection(api[0], api[1], timeout=_METRICS_SECONDS)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return text if response.status == 200 else None


def watts() -> float | None:
    """Power of this node's GPUs together, None when unknown."""
    try:
        found = [float(line) for line in memory.query("--query-gpu=power.draw")]
    except ValueError:
        return None
    return sum(found) if found else None
