"""The ``hf`` of this environment on a node, as if somebody had installed it there."""

from __future__ import annotations

import importlib.metadata
import io
import re
import tarfile
import tempfile

from pyinfra_vllm.lab import ssh
from pyinfra_vllm.lab.layout import Layout

_FOLDER, _PROGRAM = "opt/hf", "usr/local/bin/hf"
_SCRIPT = f"""#!/bin/sh
export PYTHONPATH=/{_FOLDER} HF_HUB_DISABLE_TELEMETRY=1
exec python3 -c "from huggingface_hub.cli.hf import main; main()" "$@"
"""


def give(lab: Layout, rank: int) -> None:
    """Copy it with all that it needs; the node's python3 runs it."""
    with tempfile.TemporaryFile("w+b") as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name in sorted(_needed("huggingface_hub")):
                for path in importlib.metadata.files(name) or ():
                    if ".." not in path.parts:
                        tar.add(str(path.locate()), f"{_FOLDER}/{path}")
            info = tarfile.TarInfo(_PROGRAM)
            info.mode, info.size = 0o755, len(_SCRIPT)
            tar.addfile(info, io.BytesIO(_SCRIPT.encode()))
        file.seek(0)
        ssh.ask(lab, lab.machines[rank], "tar -x -C / --no-same-owner", file)


def take(lab: Layout, rank: int) -> None:
    ssh.ask(lab, lab.machines[rank], f"rm -rf /{_FOLDER} /{_PROGRAM}")


def _needed(name: str, known: frozenset[str] = frozenset()) -> set[str]:
    """A distribution and all that it requires, as far as it is installed."""
    found = {name}
    for requirement in importlib.metadata.requires(name) or ():
        other = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        if "extra ==" in requirement or other in known | found:
            continue
        try:
            found |= _needed(other, known | found)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
