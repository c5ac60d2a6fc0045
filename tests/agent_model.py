"""A model in a Hugging Face cache, a local file and a release that composes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import compose, paths

REVISION = "b" * 40
EMPTY_SHARD = "\2\0\0\0\0\0\0\0{}"
"""A safetensors file without tensors."""


def manifest_of(*snapshots: str, local_files: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "schema": 1,
        "directory": "/tmp/composed-models/main/x",
        "sources": [
            {"repo": f"org/{path[1:]}", "revision": REVISION, "snapshot": path}
            for path in snapshots
        ],
        "local_files": [{"host": f, "name": f.rpartition("/")[2]} for f in local_files],
    }


class Model:
    """A snapshot, a local file and a release folder below a root that stands for /."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hub = root / "nas" / "hub"
        folder = self.hub / "models--org--m"
        self.snapshot = folder / "snapshots" / REVISION
        (self.snapshot / "sub").mkdir(parents=True)
        (folder / "blobs").mkdir()
        index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
        self.add("config.json", "{}")
        self.add("one.safetensors", EMPTY_SHARD)
        self.add("two.safetensors", EMPTY_SHARD)
        self.add("model.safetensors.index.json", json.dumps(index))
        self.add("sub/notes.txt", "x")
        self.local = root / "local" / "two.safetensors"
        self.local.parent.mkdir()
        self.local.write_text("rows of this rank")
        self.directory = root / "tmp" / "composed-models" / "main" / "r1"
        self.release = root / "release"
        self.release.mkdir()
        self.lay_manifest()

    def add(self, name: str, text: str) -> None:
        blob = self.hub / "models--org--m" / "blobs" / name.replace("/", "_")
        blob.write_text(text)
        path = self.snapshot / name
        path.symlink_to(os.path.relpath(blob, path.parent))

    def lay_manifest(self, **changes: Any) -> None:
        manifest = manifest_of(str(self.snapshot), local_files=(str(self.local),))
        manifest["sources"][0]["repo"] = "org/m"
        manifest["directory"] = str(self.directory)
        (self.release / paths.MANIFEST).write_text(json.dumps(manifest | changes))

    def compose(self) -> str:
        return compose.compose(self.release)
