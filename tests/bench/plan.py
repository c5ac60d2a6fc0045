"""How long a plan of the lab's nodes takes when there is nothing to do, and status beside it.

python tests/bench/plan.py [INVENTORY RECIPE]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "pyinfra-vllm")
RUNS = 5


def seconds(*words: str) -> tuple[float, set[int]]:
    """Median wall clock of a command, and the exit codes that it gave."""
    times, codes = [], set()
    for _ in range(RUNS):
        began = time.monotonic()
        done = subprocess.run([PROGRAM, *words], cwd=ROOT, capture_output=True, check=False)
        times.append(time.monotonic() - began)
        codes.add(done.returncode)
    return statistics.median(times), codes


def main() -> None:
    inventory, recipe = sys.argv[1:] or ("inventory/lab.py", "tiny-cpu-4x")
    for words in (("plan", inventory, recipe), ("status", inventory)):
        took, codes = seconds(*words)
        print(f"pyinfra-vllm {words[0]:8} {took:6.2f} s (aim 3 s; exit codes {codes})", flush=True)


if __name__ == "__main__":
    main()
