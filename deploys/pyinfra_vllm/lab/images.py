"""Images that the head builds from, made without a registry: a small Debian, and torch's wheel."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import root, ssh, variables
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


def missing(layout: Layout, archives: Mapping[str, Path]) -> dict[str, Path]:
    """Those of ``archives`` (tag -> archive) that the head's dockerd doesn't have as they are."""
    known = f"docker image inspect --format '{{{{index .Config.Labels \"{_LABEL}\"}}}}'"
    answer = ssh.look(layout, layout.machines[0], f"{known} {' '.join(archives)}")
    has = answer.stdout.split()
    return {tag: path for tag, path in archives.items() if _made_from(tag, path) not in has}


def import_image(layout: Layout, tag: str, archive: Path) -> None:
    """Import ``archive`` as ``tag`` into the head's dockerd."""
    changes = [f"LABEL {_LABEL}={_made_from(tag, archive)}"]
    changes += [f"ENV {name}={json.dumps(value)}" for name, value in _environ(tag).items()]
    options = " ".join(f"--change {shlex.quote(change)}" for change in changes)
    with open(archive, "rb") as stream:
        ssh.ask(layout, layout.machines[0], f"docker import {options} - {tag}", stream)


def _made_from(tag: str, archive: Path) -> str:
    return _digest(json.dumps([archive.name, _environ(tag)]))


def _environ(tag: str) -> dict[str, str]:
    return variables.installers() if tag == BASE_IMAGE else {}


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
