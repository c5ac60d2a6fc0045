"""Prove on the node itself that this agent is usable there, before it replaces an older one."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import compose, container, launch, links, paths
from .document import Document
from .errors import EXIT_UNMET, Unmet

_LAUNCH = {
    "schema": 1,
    "gang": "selftest",
    "release": "0" * 64,
    "recipe": "selftest",
    "rank": 0,
    "size": 1,
    "image": {"build": None, "tag": "selftest"},
    "container": "vllm-selftest",
    "labels": {paths.LABEL_GANG: "selftest"},
    "options": [],
    "mounts": [],
    "environ": {},
    "argv": ["true"],
    "composed": None,
    "api": {"address": "127.0.0.1", "port": 1, "model": "selftest"},
    "start_timeout": 1,
}


def main() -> int:
    """0 when Python, the file system and the agent's own code do what the agent needs."""
    try:
        _check_modules()
        _check_command_line()
        _check_links()
    except (Unmet, OSError) as error:
        print(f"selftest: {error}", file=sys.stderr)
        return EXIT_UNMET
    print("usable")
    return 0


def _check_modules() -> None:
    """Every module can be imported: a command imports no more than it needs."""
    package = __package__ or ""
    for module in pkgutil.iter_modules(sys.modules[package].__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _check_command_line() -> None:
    rank = launch.parse(Document("selftest", json.loads(json.dumps(_LAUNCH))))
    argv = container.run(rank, "sha256:0")
    if argv[-2:] != ["true", "sha256:0"]:
        raise Unmet(f"command line is {argv}")
    subprocess.run(["true"], check=True)


def _check_links() -> None:
    with tempfile.TemporaryDirectory(prefix="pyinfra-vllm-selftest-") as name:
        folder = Path(name)
        shard = folder / "shard"
        shard.write_bytes(b"x")
        plan = {
            "config.json": links.Link("symbolic", str(shard)),
            "shard": links.Link("hard", str(shard)),
        }
        compose.build(folder / "model", plan)
        if not (folder / "model" / "shard").samefile(shard):
            raise Unmet(f"hard links don't work in {folder}")
