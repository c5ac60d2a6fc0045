"""What the engine of this gang says of itself, asked on the node as its agent asks it."""

# ruff: noqa: PTH118

from __future__ import annotations

import json
import os
import socket
import time

from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.parts import Document, Unavailable

_WANTED = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_usage",
    "vllm:gpu_cache_usage_perc": "kv_usage",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generation_tokens",
}
_SECONDS = 5.0


def metrics(root: str, gang: str, interval: float | None) -> Document | None:
    """Two looks ``interval`` seconds apart; None where nobody asked, or this is no head."""
    if interval is None:
        return None
    try:
        launch = json.loads(read_text(os.path.join(root, gang, "current", "launch.json")))
        head, api = launch["rank"] == 0, launch["api"]
        address = (str(api["address"]), int(api["port"]))
    except (ValueError, KeyError, TypeError):
        return None
    if not head:
        return None
    before, began = values(_get(address)), time.monotonic()
    time.sleep(interval)
    after, seconds = values(_get(address)), time.monotonic() - began
    return {
        **{name: after.get(name) for name in ("running", "waiting", "kv_usage")},
        "prompt_rate": _rate("prompt_tokens", before, after, seconds),
        "generation_rate": _rate("generation_tokens", before, after, seconds),
        "seconds": round(seconds, 3),
    }


def _rate(name: str, before: dict[str, float], after: dict[str, float], seconds: float) -> object:
    if name not in before or name not in after:
        return None
    return round(max(0.0, after[name] - before[name]) / seconds, 1)


def values(text: str) -> dict[str, float]:
    """Gauges and counters of the Prometheus text, those of several engines added up."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name = _WANTED.get(line.partition("{")[0].partition(" ")[0])
        if name:
            try:
                number = float(line.rpartition(" ")[2])
            except ValueError:
                continue
            found[name] = found.get(name, 0.0) + number
    return found


def _get(address: tuple[str, int]) -> str:
    try:
        with socket.create_connection(address, _SECONDS) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: engine\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    except OSError as error:
        raise Unavailable(f"{address[0]}:{address[1]}: {error.strerror or error}") from error
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] + b" ":
        raise Unavailable(f"/metrics: {head[:80].decode(errors='replace')}")
    return body.decode("utf-8", "replace")
