"""Prove that what was compiled runs on the GPUs that it is meant for.

Runs as a step of an image's build, in a stage that has CUDA's ``cuobjdump``: each shared
library of the distributions named that holds GPU code must hold code for every ``--gpu``,
and each of these distributions must have such a library.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

_GPU_CODE = b".nv_fatbin"
"""Section of an ELF file that nvcc puts GPU code into; its name stands in the section table."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="append", required=True, help="such as sm_121a")
    parser.add_argument("distributions", nargs="+")
    options = parser.parse_args()
    findings = [line for name in options.distributions for line in _findings(name, options.gpu)]
    for finding in findings:
        print(f"gpus: {finding}", file=sys.stderr)
    return 1 if findings else 0


def _findings(distribution: str, wanted: list[str]) -> Iterator[str]:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        yield f"{distribution} isn't installed"
        return
    libraries = [Path(str(one.locate())) for one in files if ".so" in one.suffixes]
    with_code = [path for path in libraries if _GPU_CODE in path.read_bytes()]
    if not with_code:
        yield f"{distribution}: none of its {len(libraries)} shared libraries holds GPU code"
    for path in with_code:
        found = _gpus_of(path)
        if missing := [gpu for gpu in wanted if gpu not in found]:
            has = ", ".join(sorted(found)) or "none"
            yield f"{distribution}: {path.name} has no code for {', '.join(missing)}, only: {has}"


def _gpus_of(library: Path) -> set[str]:
    """Such as ``sm_121a``; names of files in the library look like ``lib.1.sm_121a.cubin``."""
    listed = subprocess.run(
        ["cuobjdump", "--list-elf", str(library)], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"\.(sm_\w+)\.cubin", listed.stdout))


if __name__ == "__main__":
    sys.exit(main())
