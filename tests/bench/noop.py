"""How long a deploy takes that has nothing to change, and how many remote commands it needs.

    python tests/bench/noop.py [INVENTORY [RECIPE]]

The gang must serve the recipe already. Printed are the median of three runs and the remote
commands of each node after connecting, beside `pyinfra exec -- true` on the same nodes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYINFRA = str(Path(sys.executable).parent / "pyinfra")
RUNS = 3

# Runs pyinfra's command line and counts what the ssh connector is asked to run.
COUNTING = """
import pyinfra_cli, sys
from collections import Counter
from pyinfra.connectors.ssh import SSHConnector
from pyinfra_cli.main import main
counts, run = Counter(), SSHConnector.run_shell_command
def counted(self, command, *args, **kwargs):
    counts[self.host.name] += 1
    return run(self, command, *args, **kwargs)
SSHConnector.run_shell_command = counted
try:
    main()
finally:
    print("COMMANDS", dict(sorted(counts.items())))
"""


def seconds(*words: str) -> float:
    """Median wall clock of a command."""
    times = []
    for _ in range(RUNS):
        began = time.monotonic()
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return statistics.median(times)


def commands(*words: str) -> str:
    """What each node was asked to run, as text."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("COMMANDS")]
    return line.removeprefix("COMMANDS ")


def main() -> None:
    inventory, recipe = [*sys.argv[1:], "inventory/lab.py", "tiny-cpu-4x"][:2]
    if len(sys.argv) == 2:
        recipe = "tiny-cpu-4x"
    nothing = ("-y", inventory, "exec", "--", "true")
    deploy = ("-y", inventory, "deploys/recipe.py", "--data", f"recipe={recipe}")
    base, took = seconds(PYINFRA, *nothing), seconds(PYINFRA, *deploy)
    print(f"pyinfra exec -- true        {base:6.2f} s")
    print(f"deploy, nothing to change   {took:6.2f} s  ({took / base:.1f} x)")
    print(f"remote commands a node      {commands(*deploy)}")


if __name__ == "__main__":
    main()
