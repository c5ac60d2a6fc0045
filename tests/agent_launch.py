"""A launch document that is right, to be changed by tests."""

from __future__ import annotations

from typing import Any

from pyinfra_vllm.agent import launch, paths
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.launch import Launch


def document_of(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "gang": "main",
        "release": "a" * 64,
        "recipe": "tiny",
        "rank": 0,
        "size": 2,
        "image": {"build": "c" * 64, "tag": "tiny:local"},
        "container": "vllm-main",
        "labels": {paths.LABEL_GANG: "main"},
        "options": ["--network", "host"],
        "mounts": [],
        "environ": {"A": "one two", "B": ""},
        "argv": ["vllm", "serve", "/model", "--master-port", "29501"],
        "composed": None,
        "api": {"address": "127.0.0.1", "port": 8000, "model": "tiny"},
        "start_timeout": 60,
        "a key of a later version": 1,
    } | changes


def launch_of(**changes: Any) -> Launch:
    return launch.parse(Document("launch.json", document_of(**changes)))
