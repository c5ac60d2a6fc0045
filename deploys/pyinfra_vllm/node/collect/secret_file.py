"""The file with the values of secret variables: who may read it, and salted hashes, no values."""

# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import hashlib
import json
import os

from pyinfra_vllm.node.collect.files import path_state
from pyinfra_vllm.node.collect.parts import Document

ROUNDS = 20_000


def secrets(root: str, gang: str, status_path: str) -> Document:
    """``in_use``: whether the engine got the value that the file has now, by name."""
    path = os.path.join(root, gang, "secrets.json")
    used_path = os.path.join(os.path.dirname(status_path), "secrets.used")
    state = path_state(path)
    if state["type"] != "file":
        return {"exists": False, "salt": "", "digests": {}, "in_use": {}}
    document = _read(path)
    salt = str(document.get("salt", ""))
    values = document.get("values", {})
    digests = {name: _digest(salt, value) for name, value in values.items()}
    used = _read(used_path).get("digests", {})
    return {
        "exists": True,
        "mode": state["mode"],
        "owner": state["owner"],
        "salt": salt,
        "digests": digests,
        "in_use": {name: used.get(name) == digest for name, digest in digests.items()},
    }


def _digest(salt: str, value: str) -> str:
    data = value.encode("utf-8", "surrogateescape")
    return hashlib.pbkdf2_hmac("sha256", data, salt.encode(), ROUNDS).hex()


def _read(path: str) -> Document:
    """What can't be understood counts as empty: the deploy writes it anew."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
