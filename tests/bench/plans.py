"""How long a plan takes for 4, 16 and 64 gangs of four nodes, none of which is reached.

python tests/bench/plans.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYINFRA = str(Path(sys.executable).parent / "pyinfra")

INVENTORY = """
from pyinfra_vllm import offline as _offline

nodes = [
    (f"@fake/g{{gang}}-{{name}}", {{**data, "vllm_gang": f"g{{gang}}"}})
    for gang in range({gangs})
    for name, data in [
        (host[0].rpartition("/")[2], host[1])
        for host in _offline.groups("inventory/gb10.py", None)["spark"]
    ]
]
"""


def seconds(gangs: int) -> tuple[float, float]:
    """Wall clock and processor time of ``--dry`` for so many gangs."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "many.py"
        inventory.write_text(INVENTORY.format(gangs=gangs))
        words = (str(inventory), "deploys/recipe.py", "--data", "recipe=r37", "--dry", "--json")
        began, used = time.monotonic(), os.times().children_user
        subprocess.run(
            [PYINFRA, *words],
            cwd=ROOT,
            check=True,
            capture_output=True,
            env={**os.environ, "PYINFRA_PROGRESS": "off"},
        )
        return time.monotonic() - began, os.times().children_user - used


def main() -> None:
    for gangs in (4, 16, 64):
        took, used = seconds(gangs)
        print(f"{gangs:3} gangs of 4: {took:6.2f} s ({used:.2f} s of processor)", flush=True)


if __name__ == "__main__":
    main()
