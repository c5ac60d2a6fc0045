"""Prove a finished image from inside: runs as the last step of its build, prints each finding."""

from __future__ import annotations

import argparse
import importlib
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--cuda")
    parser.add_argument("--version", action="append", default=[], metavar="NAME=VERSION")
    parser.add_argument("--library", action="append", default=[], metavar="NAME=VERSION")
    parser.add_argument("--import", action="append", default=[], dest="modules")
    options = parser.parse_args()
    findings = [*_platform(options), *_versions(options.version), *_imports(options.modules)]
    findings += [*_libraries(options.library), *_torch(options), *_command()]
    for finding in findings:
        print(f"verify: {finding}", file=sys.stderr)
    return 1 if findings else 0


def _platform(options: argparse.Namespace) -> Iterator[str]:
    if platform.machine() != options.machine:
        yield f"machine is {platform.machine()}, wanted {options.machine}"
    if ".".join(platform.python_version_tuple()[:2]) != options.python:
        yield f"python is {platform.python_version()}, wanted {options.python}"


def _versions(wanted: list[str]) -> Iterator[str]:
    """A version without a local part (``+cu132``) fits every local part."""
    for pair in wanted:
        name, _, version = pair.partition("=")
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield f"{name} isn't installed, wanted {version}"
            continue
        if version not in (found, found.partition("+")[0]):
            yield f"{name} is {found}, wanted {version}"


def _libraries(wanted: list[str]) -> Iterator[str]:
    for pair in wanted:
        name, _, version = pair.partition("=")
        asked = _ran("pkg-config", "--modversion", name)
        if asked.returncode:
            yield f"{name} isn't installed, wanted {version}: {asked.stderr.strip()}"
        elif asked.stdout.strip() != version:
            yield f"{name} is {asked.stdout.strip()}, wanted {version}"


def _imports(modules: list[str]) -> Iterator[str]:
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            yield f"import {module}: {type(error).__name__}: {error}"


def _torch(options: argparse.Namespace) -> Iterator[str]:
    if not options.cuda:
        return
    found = importlib.import_module("torch").version.cuda
    if found != options.cuda:
        yield f"torch was built for CUDA {found}, wanted {options.cuda}"


def _command() -> Iterator[str]:
    ran = _ran("vllm", "serve", "--help")
    if ran.returncode:
        yield f"vllm serve --help exits {ran.returncode}: {ran.stderr[-2000:]}"


def _ran(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
