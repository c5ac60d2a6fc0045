"""Images that the head builds from, made without a registry: a small Debian, and torch's wheel."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import root, ssh, surroundings
from pyinfra_vllm.lab.layout import BASE_IMAGE, CACHE, Layout
from pyinfra_vllm.lab.shell import attempt

BASE_PACKAGES = (
    "ca-certificates",
    "libnuma1",
    "python3",
    "python3-pip",
    "python3-venv",
    "util-linux",
)
TORCH = "torch==2.13.0+cpu"
PYTHON = "3.11"
"""Python of Debian bookworm, which the wheel must fit."""
_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_LABEL = "pyinfra-vllm.lab"


def base() -> Path:
    """Where the archive of the base image is, or will be."""
    return CACHE / f"base-{_digest(root.inputs(BASE_PACKAGES))}.tar"


def make_base(target: Path) -> None:
    beside = target.with_name("new-" + target.name)
    root.bootstrap(BASE_PACKAGES, beside)
    beside.rename(target)


def wheels() -> Path:
    """Where the archive of the wheels image is, or will be."""
    return CACHE / f"wheels-{_digest(f'{TORCH} {PYTHON}')}.tar"


def make_wheels(target: Path) -> None:
    """Download torch's CPU wheel and pack it as /wheels; UserError with pip's words."""
    folder = CACHE / "new-wheels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _download(folder)
        beside = target.with_name("new-" + target.name)
        with tarfile.open(beside, "w") as archive:
            archive.add(folder, "wheels", filter=_plain)
        beside.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ensure_imported(layout: Layout, tag: str, archive: Path) -> bool:
    """Import ``archive`` as ``tag`` into the head's dockerd; False when it has it already."""
    head, made_from = layout.machines[0], _digest(archive.name + json.dumps(_environ(tag)))
    known = f"docker image inspect --format '{{{{index .Config.Labels \"{_LABEL}\"}}}}' {tag}"
    if ssh.look(layout, head, known).stdout.strip() == made_from:
        return False
    changes = [f"LABEL {_LABEL}={made_from}", *(f"ENV {k}={v}" for k, v in _environ(tag).items())]
    options = " ".join(f"--change '{change}'" for change in changes)
    with open(archive, "rb") as stream:
        ssh.ask(layout, head, f"docker import {options} - {tag}", stream)
    return True


def _environ(tag: str) -> dict[str, str]:
    return surroundings.installers() if tag == BASE_IMAGE else {}


def _download(folder: Path) -> None:
    """Take what this machine's own pip configuration finds first, then PyTorch's CPU index."""
    said = ""
    for source in ([], ["--index-url", _CPU_INDEX]):
        for pip in _pips():
            done = attempt([*pip, "--no-deps", "--dest", folder, *source, TORCH])
            if done.returncode == 0:
                return
            said = done.stderr.strip() or said
    lines = "\n".join(f"  {line}" for line in said.splitlines()[-6:])
    raise UserError(f"can't download {TORCH} for Python {PYTHON}; pip says\n{lines}")


def _pips() -> list[list[str]]:
    """Commands that download for Python 3.11: of that version, or of another one told so."""
    pips = [[f"python{PYTHON}", "-m", "pip", "download"]]
    foreign = ["-m", "pip", "download", "--only-binary=:all:", f"--python-version={PYTHON}"]
    pips += [[python, *foreign] for python in ("python3", "/usr/bin/python3", sys.executable)]
    usable = [pip for pip in pips if shutil.which(pip[0]) and _has_pip(pip[0])]
    if not usable:
        raise UserError("no Python with pip is on the PATH; install python3-pip and try again")
    return usable


def _has_pip(python: str) -> bool:
    return attempt([python, "-m", "pip", "--version"]).returncode == 0


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = 0
    return info


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
