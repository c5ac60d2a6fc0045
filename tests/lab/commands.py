"""pyinfra as a person runs it: the command line, on the nodes of a lab."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    """How a command ended; ``text`` is all that it printed, without colours."""

    code: int
    text: str

    def changes(self) -> dict[str, int]:
        """Operation -> number of nodes it changed, from the table of a run that applied.

        Without the lock's return, which follows whatever else was changed.
        """
        return {
            name: changed
            for name, (changed, _, _) in self._rows().items()
            if changed and name != "Serve | Gang: lock given back"
        }

    def errors(self) -> dict[str, int]:
        """Operation -> number of nodes it failed on."""
        return {name: failed for name, (_, failed, _) in self._rows().items() if failed}

    def _rows(self) -> dict[str, tuple[int, int, int]]:
        row = re.compile(r"^    (Serve \| .+?) {2,}\d+ +(\d+|-) +(\d+|-) +(\d+|-) *$", re.M)
        return {
            name: (_count(success), _count(error), _count(same))
            for name, success, error, same in row.findall(self.text)
        }

    def planned(self) -> dict[str, set[str]]:
        """Operation -> the nodes it would change, from the table of a dry run."""
        row = re.compile(r"^    (Serve \| .+?) {2,}(?:\d+ \(([^)]*)\)|-) {2,}", re.M)
        return {
            name: {node.strip() for node in nodes.split(",") if node.strip()}
            for name, nodes in row.findall(self.text)
        }


def _count(cell: str) -> int:
    return 0 if cell == "-" else int(cell)


def pyinfra(
    *words: str,
    lab: str,
    inventory: str | Path = ROOT / "inventory" / "lab.py",
    cwd: Path = ROOT,
    deploy: str | Path = ROOT / "deploys" / "recipe.py",
) -> Ran:
    """Run pyinfra on the lab of that name."""
    program = Path(sys.executable).with_name("pyinfra")
    done = subprocess.run(
        [program, *words[:1], inventory, deploy, *words[1:]],
        cwd=cwd,
        env={**os.environ, "PYINFRA_VLLM_LAB": lab, "PYINFRA_PROGRESS": "off", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1500,
    )
    return Ran(done.returncode, _COLOUR.sub("", done.stdout))


def complete(address: str, port: int = 8000, **asked: Any) -> str:
    """Greedy text of a completion."""
    body = {"model": "tiny", "prompt": "Hello", "max_tokens": 16, "temperature": 0, **asked}
    request = urllib.request.Request(
        f"http://{address}:{port}/v1/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["text"])
