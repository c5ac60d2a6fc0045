"""Actions that place files on a node, and the script that carries them out. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyinfra_vllm.node_script import filled

Action = dict[str, Any]

_SCRIPT = Path(__file__).parent / "node" / "place.py"
_SLOT = "ACTIONS: list[dict[str, Any]] = []\n"


def tree(path: str, files: Mapping[str, str], mode: int = 0o644) -> Action:
    """A directory that holds exactly ``files`` (name -> text)."""
    entries = [{"name": name, **_content(text, mode)} for name, text in files.items()]
    return {"do": "tree", "path": path, "files": entries}


def file(
    path: str,
    content: str | bytes,
    mode: int = 0o644,
    check: Sequence[str] | None = None,
) -> Action:
    """One file. ``check``: argv that must succeed first; ``{path}`` in it is the new file."""
    return {"do": "file", "path": path, "check": check, **_content(content, mode)}


def link(path: str, target: str) -> Action:
    """A symbolic link."""
    return {"do": "link", "path": path, "target": target}


def secrets(path: str, values: Mapping[str, str]) -> Action:
    """A file of secret values, mode 0600, in which these are new; others in it stay."""
    return {"do": "secrets", "path": path, "values": dict(values)}


def remove(path: str) -> Action:
    """Nothing at ``path``."""
    return {"do": "remove", "path": path}


def script(actions: Sequence[Action]) -> str:
    """Python text for the standard input of ``python3 -`` on the node."""
    return filled(_SCRIPT, _SLOT, "ACTIONS", list(actions))


def _content(content: str | bytes, mode: int) -> Action:
    data = content.encode() if isinstance(content, str) else content
    return {"base64": base64.b64encode(data).decode(), "mode": mode}
