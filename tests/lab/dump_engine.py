#!/usr/bin/python3
"""An engine that keeps what it got, argv and environ, and answers completions."""

import base64
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


def got(name: str) -> list[str]:
    data = Path("/proc/self", name).read_bytes()
    return [base64.b64encode(word).decode() for word in data.split(b"\0")[:-1]]


class Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        key = os.environ.get("VLLM_API_KEY")
        allowed = key is None or self.headers.get("Authorization") == f"Bearer {key}"
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(200 if allowed else 401, {"choices": [{"text": "x"}]} if allowed else {})

    def _answer(self, code: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    # The first two words are the interpreter and this file.
    document = {"argv": got("cmdline")[2:], "environ": got("environ")}
    kept = Path("/root/.cache/dump.json")
    kept.with_suffix(".new").write_text(json.dumps(document))
    kept.with_suffix(".new").replace(kept)
    HTTPServer(("", 8000), Api).serve_forever()
