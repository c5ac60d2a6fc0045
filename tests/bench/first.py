"""How long the first steps take: the help of the command, a lab, and a deploy from nothing.

    python tests/bench/first.py [NAME]

With the NAME of a lab that isn't there, the lab is brought up, served, and taken down again.
Files that earlier labs have left in the cache are used; `rm -r /var/cache/pyinfra-vllm-lab` first
shows what a fresh machine takes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
RUNS = 5


def seconds(*words: str | Path, **environ: str) -> float:
    """Wall clock of a command that must end well."""
    began = time.monotonic()
    subprocess.run(
        words,
        cwd=ROOT,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )
    return time.monotonic() - began


def first_run(name: str) -> None:
    """A lab of this name from nothing to the first completion."""
    lab = (BIN / "pyinfra-vllm", "lab", "--name", name)
    deploy = ("-y", "inventory/lab.py", "deploys/recipe.py", "--data", "recipe=tiny-cpu-4x")
    up = seconds(*lab, "up")
    try:
        print(f"lab up                      {up:6.1f} s", flush=True)
        took = seconds(BIN / "pyinfra", *deploy, PYINFRA_VLLM_LAB=name)
        print(f"build, copy, stage, start   {took:6.1f} s  (together {up + took:.0f} s)")
    finally:
        print(f"lab down                    {seconds(*lab, 'down'):6.1f} s")


def main() -> None:
    times = [seconds(BIN / "pyinfra-vllm", "--help") for _ in range(RUNS)]
    print(f"pyinfra-vllm --help         {statistics.median(times):6.2f} s", flush=True)
    if len(sys.argv) > 1:
        first_run(sys.argv[1])


if __name__ == "__main__":
    main()
