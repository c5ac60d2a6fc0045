"""A model hub on this machine: the few answers that ``hf download`` asks of one, over HTTP.

It serves one repository in any number of revisions, slowly if wanted, and can break off in the
middle of a file. ``asked`` has every request for a file's content.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

Files = Mapping[str, bytes]
_PIECE = 64 << 10


@dataclass
class Hub:
    """``revisions``: files by commit; ``main`` is the last one. ``rate``: bytes a second."""

    repo: str
    revisions: dict[str, Files]
    rate: float = 0.0
    breaks: list[str] = field(default_factory=list)
    """Names of files that are broken off in their middle, once for each time they are here."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """(commit, file, Range)"""
    sent: int = 0

    def commit(self, revision: str) -> str | None:
        if revision == "main":
            return list(self.revisions)[-1]
        return revision if revision in self.revisions else None

    def serve(self, address: str) -> ThreadingHTTPServer:
        """Serve on a free port of ``address`` until its ``shutdown``."""
        handler = type("Handler", (_Handler,), {"hub": self})
        server = ThreadingHTTPServer((address, 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Tells nobody."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        api, file = f"/api/models/{self.hub.repo}", f"/{self.hub.repo}/resolve/"
        if path == api or path.startswith(f"{api}/revision/"):
            self._info(path.rpartition("/revision/")[2] if path != api else "main")
        elif path.startswith(f"{api}/tree/"):
            self._tree(path.removeprefix(f"{api}/tree/").partition("/")[0])
        elif path.startswith(file):
            revision, _, name = path.removeprefix(file).partition("/")
            self._file(revision, name, with_body)
        else:
            self._missing("EntryNotFound")

    def _missing(self, code: str) -> None:
        self._headers(404, {"X-Error-Code": code, "Content-Length": "0"})

    def _headers(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _json(self, document: object) -> None:
        body = json.dumps(document).encode()
        self._headers(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _info(self, revision: str) -> None:
        commit = self.hub.commit(revision)
        if commit is None:
            self._missing("RevisionNotFound")
            return
        siblings = [{"rfilename": name} for name in self.hub.revisions[commit]]
        self._json({"id": self.hub.repo, "sha": commit, "private": False, "siblings": siblings})

    def _tree(self, revision: str) -> None:
        files = self.hub.revisions[self.hub.commit(revision) or ""]
        self._json(
            [
                {"type": "file", "path": name, "size": len(content), "oid": _etag(name, content)}
                for name, content in files.items()
            ]
        )

    def _file(self, revision: str, name: str, with_body: bool) -> None:
        commit = self.hub.commit(revision)
        content = self.hub.revisions[commit].get(name) if commit else None
        if commit is None or content is None:
            self._missing("RevisionNotFound" if commit is None else "EntryNotFound")
            return
        asked = self.headers.get("Range", "") if with_body else ""
        start = int(asked.removeprefix("bytes=").partition("-")[0] or 0) if asked else 0
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{_etag(name, content)}"',
            "Accept-Ranges": "bytes",
            "Content-Length": str(len(content) - start),
        }
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._headers(206 if asked else 200, headers)
        if with_body:
            self.hub.asked.append((commit, name, asked))
            self._send(name, content[start:])

    def _send(self, name: str, content: bytes) -> None:
        end = len(content)
        if name in self.hub.breaks:
            self.hub.breaks.remove(name)
            end //= 2
            self.close_connection = True
        for at in range(0, end, _PIECE):
            piece = content[at : min(at + _PIECE, end)]
            self.wfile.write(piece)
            self.hub.sent += len(piece)
            if self.hub.rate:
                time.sleep(len(piece) / self.hub.rate)


def _etag(name: str, content: bytes) -> str:
    """As the hub has it: sha256 of large files, git's own sha1 of the others."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
