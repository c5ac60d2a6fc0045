"""What earlier deploys left behind, and rules of others that would take away what is ours."""

# ruff: noqa: PTH119, PTH208

from __future__ import annotations

import os
import subprocess

from pyinfra_vllm.node.collect.files import names_in, read_text
from pyinfra_vllm.node.collect.gpu import user_of
from pyinfra_vllm.node.collect.listeners import container_of, unit_of
from pyinfra_vllm.node.collect.parts import Document
from pyinfra_vllm.node.collect.secrets import masked

_AGED = ("/tmp", "/var/tmp")
_ENGINES = (
    "vllm", "sglang", "ollama", "llama-server", "trtllm-serve", "text-generation-launcher",
    "lmdeploy", "ray::IDLE", "raylet",
)  # fmt: skip
_MODULES = ("vllm.entrypoints", "sglang.launch_server", "lmdeploy", "tensorrt_llm")
_PYTHON = ("python", "pypy")
_SHOWN = 12


def leftovers(state_root: str, unit_root: str, composed_root: str) -> Document:
    """Names only: gangs with a folder of state, our units, composed models, an offered image."""
    folders = names_in(state_root)
    gangs = [name for name in folders if "releases" in names_in(f"{state_root}/{name}")]
    models = {name: names_in(f"{composed_root}/{name}") for name in names_in(composed_root)}
    return {
        "gangs": gangs,
        "units": [
            name
            for name in names_in(unit_root)
            if name.startswith("vllm-") and name.endswith(".service")
        ],
        "composed": [f"{gang}/{name}" for gang, names in models.items() for name in names],
        "share": "share" in folders,
    }


def ageing() -> list[Document]:
    """Rules of tmpfiles.d that remove old entries below /tmp or /var/tmp; ours are ``x`` lines."""
    try:
        done = subprocess.run(["systemd-tmpfiles", "--cat-config"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return rules(done.stdout)


def rules(text: str) -> list[Document]:
    """Lines of tmpfiles.d(5) below the two folders that have an age or exclude from ageing."""
    found = []
    for line in text.splitlines():
        words = [word.strip('"') for word in line.split()]
        if len(words) < 2 or words[0].startswith("#"):
            continue
        path = words[1].rstrip("/")
        age = words[5] if len(words) > 5 and words[5] != "-" else None
        if path.startswith(_AGED) and (age or words[0][0] in "xX"):
            found.append({"type": words[0], "path": path, "age": age})
    return found


def engines() -> list[Document]:
    """Processes that look like inference engines, ours among them, with user, memory, container."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = [word for word in read_text(f"/proc/{name}/cmdline").split("\0") if word]
        if words and is_engine(words):
            found.append(
                {
                    "pid": int(name),
                    "command": masked(words[:_SHOWN]),
                    "user": user_of(int(name)),
                    "memory": _resident(int(name)),
                    "container_id": container_of(int(name)),
                    "unit": unit_of(int(name)),
                }
            )
    return found


def is_engine(words: list[str]) -> bool:
    """Whether a command line starts an engine: by program, script or ``-m`` module."""
    first = os.path.basename(words[0])
    if first in _ENGINES or first.startswith("VLLM::"):
        return True
    if not first.startswith(_PYTHON):
        return False
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return os.path.basename(script) in _ENGINES or ("-m" in words and script.startswith(_MODULES))


def _resident(pid: int) -> int:
    """Bytes in memory, shared ones counted too."""
    pages = read_text(f"/proc/{pid}/statm").split()[1:2]
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0
