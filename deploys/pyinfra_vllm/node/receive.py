"""Script for a node: load an image, prove that it is the one meant, and give it its tag.

It is sent on standard input and needs the standard library only. The image comes from another
node (``share.py``), from an archive on storage that the nodes share, or from a registry. It
gets its tag only when its build digest and layers are the expected ones.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {}

_MIB = 1 << 20
_SAY_EVERY = 5.0
_TRIES = 40
"""The sender has been started a moment ago: it is asked again every half second."""


def main(request: dict[str, Any]) -> int:
    """Exit code; what went wrong is on standard error."""
    try:
        image = _fetch(request)
        _prove(request, image)
        _docker("tag", image, request["tag"])
        _forget(image)
        print(f"{request['tag']} is here, {image[:19]}", flush=True)
        return 0
    except (RuntimeError, OSError) as error:
        print(f"{request['tag']}: {error}", file=sys.stderr)
        return 1


def _fetch(request: dict[str, Any]) -> str:
    """The Id of what was loaded."""
    kind, value = request["from"], request["value"]
    if kind == "registry":
        _docker("pull", "--quiet", value)
        return _docker("image", "inspect", "--format", "{{.Id}}", value)
    if kind == "archive":
        if not Path(value).is_file():
            raise RuntimeError(f"{value} is not there; mount it, or correct vllm_image_source")
        return _loaded(_docker("load", "--quiet", "--input", value))
    address, port = value
    return _load(_pieces(address, port, request["token"]), request["size"])


def _pieces(address: str, port: int, token: str) -> Iterator[bytes]:
    """What the other node sends. RuntimeError when it ends too early."""
    with _connect(address, port) as link:
        link.sendall(f"{token}\n".encode())
        link.settimeout(None)
        stream = link.makefile("rb", buffering=_MIB)
        while True:
            head = stream.read(4)
            size = struct.unpack("!I", head)[0] if len(head) == 4 else None
            piece = stream.read(size) if size else b""
            if size is None or len(piece) < size:
                raise RuntimeError(f"{address} stopped sending; is there room on its disk?")
            if not size:
                return
            yield piece


def _connect(address: str, port: int) -> socket.socket:
    for attempt in range(_TRIES):
        try:
            return socket.create_connection((address, port), timeout=10)
        except OSError as error:
            if attempt == _TRIES - 1:
                raise RuntimeError(f"{address}:{port}: {error}") from None
            time.sleep(0.5)
    raise AssertionError


def _load(pieces: Iterator[bytes], size: int) -> str:
    done, began, said = 0, time.monotonic(), time.monotonic()
    argv = ["docker", "load", "--quiet"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
        assert load.stdin is not None and load.stdout is not None
        try:
            for piece in pieces:
                load.stdin.write(piece)
                done += len(piece)
                now = time.monotonic()
                if now - said >= _SAY_EVERY:
                    said = now
                    rate = done / _MIB / (now - began)
                    whole = max(size, done)  # the archive has more in it than the layers
                    print(f"{done // _MIB} of {whole // _MIB} MiB, {rate:.0f} MiB/s", flush=True)
            load.stdin.close()
            answer = load.stdout.read().decode()
        except BaseException:
            load.kill()
            raise
    if load.returncode:
        raise RuntimeError(f"docker load fails (exit {load.returncode})")
    return _loaded(answer)


def _loaded(answer: str) -> str:
    """The Id in ``Loaded image ID: sha256:…`` or of the tag in ``Loaded image: a:b``."""
    lines = [line for line in answer.splitlines() if line.startswith("Loaded image")]
    if len(lines) != 1:
        raise RuntimeError(f"one image expected, docker load says: {answer.strip()[:300]}")
    name = lines[0].split(": ", 1)[1].strip()
    return _docker("image", "inspect", "--format", "{{.Id}}", name)


def _prove(request: dict[str, Any], image: str) -> None:
    """RuntimeError when it isn't the image of this build with these layers."""
    shown = json.loads(_docker("image", "inspect", image))[0]
    labels = shown["Config"].get("Labels") or {}
    build, value = request["digest"], request["value"]
    if build is not None and labels.get(request["label"]) != build:
        has = labels.get(request["label"], "none")[:12]
        raise RuntimeError(
            f"{value} holds the image of another build (label {request['label']}: "
            f"{has}, wanted {build[:12]}); it is left here untagged"
        )
    if request["layers"] and shown["RootFS"]["Layers"] != request["layers"]:
        raise RuntimeError("what came has other layers than on the node that it came from")


def _forget(image: str) -> None:
    """Drop the image's files from the page cache: a node that serves has no memory to spare."""
    data = json.loads(_docker("image", "inspect", image))[0]["GraphDriver"].get("Data") or {}
    folders = [data.get("UpperDir", ""), *(data.get("LowerDir") or "").split(":")]
    os.sync()
    for folder in filter(None, folders):
        for path in Path(folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                with open(path, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docker {' '.join(words[:2])}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
