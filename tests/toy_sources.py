"""Tiny packages named like the components of the GB10 image, as git repositories and wheels.

They build without network and import without a GPU. What only CUDA has is played:
``cuobjdump`` lists the names of GPUs that stand in a library.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

CUOBJDUMP = """#!/bin/sh
# Played: the names of GPUs in the text of the library, as CUDA's own program lists them.
grep -ao 'sm_[0-9a-z]*' "$2" | sed 's/.*/ELF file    1: toy.1.&.cubin/'
"""

_PYPROJECT = """[build-system]
requires = []
build-backend = "toy_backend"
backend-path = ["."]
"""

_BACKEND = """import pathlib


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    (wheel,) = pathlib.Path("dist").glob("*.whl")
    (pathlib.Path(wheel_directory) / wheel.name).write_bytes(wheel.read_bytes())
    return wheel.name
"""

_SERVE = """from vllm.utils.argparse_utils import FlexibleArgumentParser


class _Serve:
    def subparser_init(self, subparsers):
        parser = subparsers.add_parser("serve")
        parser.add_argument("--port", type=int)
        return parser


def cmd_init():
    return [_Serve()]


def main():
    _Serve().subparser_init(FlexibleArgumentParser().add_subparsers()).print_help()
"""

LIBRARY = "\x7fELF .nv_fatbin sm_121a"

PACKAGES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "vllm/__init__.py": "",
        "vllm/_C.abi3.so": LIBRARY,
        "vllm/entrypoints/__init__.py": "",
        "vllm/entrypoints/cli/__init__.py": "",
        "vllm/entrypoints/cli/serve.py": _SERVE,
        "vllm/utils/__init__.py": "",
        "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser\n\n\n"
        "class FlexibleArgumentParser(ArgumentParser):\n    pass\n",
    },
    "b12x": {"b12x/__init__.py": ""},
    "lmcache": {"lmcache/__init__.py": "", "lmcache/c_ops.so": LIBRARY},
    "flash_kda": {"flash_kda/__init__.py": "", "flash_kda_C.so": LIBRARY},
    "deep_gemm": {"deep_gemm/__init__.py": ""},
    "torch": {
        "torch/__init__.py": "from torch import version\n",
        "torch/version.py": 'cuda = "13.2"\n',
        "torch/notes.txt": "one\n",
    },
    "cutlass": {"cutlass/__init__.py": "", "cutlass/notes.txt": "one\n"},
    "flashinfer-python": {"flashinfer/__init__.py": ""},
}
_REQUIRES = {"vllm": ("torch==2.13.0", "flashinfer-python==0.6.16", 'xformers; extra == "x"')}
_VERSIONS = {"torch": "2.13.0", "flashinfer-python": "0.6.17"}


def wheel(name: str) -> tuple[str, bytes]:
    """File name and content of a package's wheel."""
    version = _VERSIONS.get(name, "1.0")
    stem = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in _REQUIRES.get(name, ())]
    described = {
        "METADATA": "\n".join(lines) + "\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if name == "vllm":
        described["entry_points.txt"] = (
            "[console_scripts]\nvllm = vllm.entrypoints.cli.serve:main\n"
        )
    files = dict(PACKAGES[name])
    files.update({f"{stem}.dist-info/{file}": text for file, text in described.items()})
    record = "".join(f"{file},,\n" for file in (*files, f"{stem}.dist-info/RECORD"))
    files[f"{stem}.dist-info/RECORD"] = record
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file), text)
    return f"{stem}-py3-none-any.whl", buffer.getvalue()


def repository(folder: Path, name: str) -> tuple[str, str]:
    """A bare repository at ``folder`` whose last commit builds the wheel; its commit and tree."""
    work = folder.with_name(folder.name + ".work")
    (work / "dist").mkdir(parents=True)
    file, content = wheel(name)
    (work / "dist" / file).write_bytes(content)
    (work / "pyproject.toml").write_text(_PYPROJECT)
    (work / "toy_backend.py").write_text(_BACKEND)
    git(work, "init", "--quiet")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", f"{name} 1.0")
    git(work, "commit", "--quiet", "--message", "another one", "--allow-empty")
    git(work, "clone", "--quiet", "--bare", ".", str(folder))
    commit, tree = git(work, "rev-parse", "HEAD~1", "HEAD~1^{tree}").split()
    return commit, tree


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    argv = ["git", *who, "-C", str(folder), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
