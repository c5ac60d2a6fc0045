"""NVIDIA's driver, the GPUs and who uses them."""

# ruff: noqa: PTH116

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.listeners import container_of, unit_of
from pyinfra_vllm.node.collect.parts import Document

_VERSION = re.compile(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s")
_HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook", "nvidia-ctk")


def gpus() -> Document:
    """Driver, GPUs, processes; without the kernel module ``driver`` is None and there are none.

    ``error`` is what nvidia-smi says when it can't answer: a driver that was replaced
    below a running module, for one.
    """
    found = {
        "driver": driver_of(read_text("/proc/driver/nvidia/version")),
        "hooks": [name for name in _HOOKS if shutil.which(name)],
        "cuda": None,
        "devices": [],
        "processes": [],
        "error": "",
    }
    if found["driver"] is None:
        return found
    try:
        details = _ask("-q", "-x")
        capabilities = _ask("--query-gpu=compute_cap", "--format=csv,noheader")
        return {**found, **from_smi(_answer(details), _answer(capabilities).split())}
    except (OSError, ValueError, ElementTree.ParseError) as error:
        return {**found, "error": f"nvidia-smi: {error}"}


def driver_of(text: str) -> str | None:
    """Version in ``/proc/driver/nvidia/version``."""
    version = _VERSION.search(text)
    return version.group(1) if version else None


def from_smi(document: str, capabilities: list[str]) -> Document:
    """What matters of ``nvidia-smi -q -x``; sizes that it calls N/A are None."""
    log = ElementTree.fromstring(document)
    gpus = log.findall("gpu")
    return {
        "cuda": log.findtext("cuda_version"),
        "devices": [
            {
                "name": gpu.findtext("product_name", ""),
                "capability": capability,
                "memory_total": mebibytes(gpu.findtext("fb_memory_usage/total")),
                "memory_used": mebibytes(gpu.findtext("fb_memory_usage/used")),
            }
            for gpu, capability in zip(gpus, [*capabilities, *[None] * len(gpus)], strict=False)
        ],
        "processes": [
            process({child.tag: child.text or "" for child in item})
            for gpu in gpus
            for item in gpu.iterfind("processes/process_info")
        ],
    }


def process(shown: Mapping[str, str]) -> Document:
    """A process as nvidia-smi shows it, with its user and container; type C, G or C+G."""
    pid = int(shown["pid"])
    return {
        "pid": pid,
        "type": shown.get("type", ""),
        "name": shown.get("process_name", "").partition(" ")[0],
        "memory": mebibytes(shown.get("used_memory")),
        "user": user_of(pid),
        "container_id": container_of(pid),
        "unit": unit_of(pid),
    }


def mebibytes(text: str | None) -> int | None:
    """``2566 MiB`` in bytes; None for ``N/A``."""
    words = (text or "").split()
    return int(words[0]) << 20 if words and words[0].isdigit() else None


def user_of(pid: int) -> str:
    """Who runs a process; empty when it has ended."""
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _ask(*arguments: str) -> Any:
    return subprocess.Popen(
        ["nvidia-smi", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _answer(asked: Any) -> str:
    output: str = asked.communicate()[0]
    if asked.returncode:
        raise OSError(output.strip()[:300] or f"exit status {asked.returncode}")
    return output
