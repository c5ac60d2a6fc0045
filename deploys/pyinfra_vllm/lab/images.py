"""Images that the head builds from, made without a registry: a small Debian, and torch's wheel."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import root, ssh, variables
from pyinfra_vllm.lab.layout import BASE_IMAGE, CACHE, WHEELS_IMAGE, Layout
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
_LABEL = "pyinfra-vllm.lab"


@dataclass(frozen=True)
class Archive:
    """A root file system to import as ``tag``: at ``path``, or made there by ``make``."""

    tag: str
    path: Path
    make: Callable[[Path], None]

    def environ(self) -> dict[str, str]:
        """The image's ENV."""
        return variables.installers() if self.tag == BASE_IMAGE else {}

    def label(self) -> str:
        """Changes whenever the image is to be imported anew."""
        return _digest(json.dumps([self.path.name, self.environ()]))


def archives() -> tuple[Archive, ...]:
    """What the head gets; the paths are in the cache and name what they are made from."""
    wheels = CACHE / f"wheels-{_digest(f'{TORCH} {PYTHON}')}.tar"
    base = CACHE / f"base-{_digest(root.inputs(BASE_PACKAGES))}.tar"
    return (Archive(WHEELS_IMAGE, wheels, make_wheels), Archive(BASE_IMAGE, base, make_base))


def make_base(target: Path) -> None:
    beside = target.with_name("new-" + target.name)
    root.bootstrap(BASE_PACKAGES, beside)
    beside.rename(target)


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


def missing(layout: Layout, archives: Sequence[Archive]) -> list[Archive]:
    """Those of ``archives`` that the head's dockerd doesn't have as they are."""
    if not archives:
        return []
    known = f"docker image inspect --format '{{{{index .Config.Labels \"{_LABEL}\"}}}}'"
    tags = " ".join(archive.tag for archive in archives)
    has = ssh.look(layout, layout.machines[0], f"{known} {tags}").stdout.split()
    return [archive for archive in archives if archive.label() not in has]


def import_archive(layout: Layout, archive: Archive) -> None:
    """Import ``archive`` into the head's dockerd under its tag."""
    changes = [f"LABEL {_LABEL}={archive.label()}"]
    changes += [f"ENV {name}={json.dumps(value)}" for name, value in archive.environ().items()]
    options = " ".join(f"--change {shlex.quote(change)}" for change in changes)
    with open(archive.path, "rb") as stream:
        ssh.ask(layout, layout.machines[0], f"docker import {options} - {archive.tag}", stream)


def _download(folder: Path) -> None:
    """Take what pip finds as this machine has configured it; UserError with pip's words."""
    said = ""
    for pip in _pips():
        done = attempt([*pip, "--no-deps", "--dest", folder, TORCH])
        if done.returncode == 0:
            return
        said = done.stderr.strip() or said
    lines = "\n".join(f"  {line}" for line in said.splitlines()[-6:])
    raise UserError(
        f"can't download {TORCH} for Python {PYTHON}; name the index of PyTorch's CPU builds in "
        f"PIP_EXTRA_INDEX_URL, or a folder with the wheel in PIP_FIND_LINKS; pip says\n{lines}"
    )


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
