"""A gang on a lab whose nodes get broken: what it says, and how it is brought up and hurt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import commands, machine, ssh
from pyinfra_vllm.lab.layout import Layout

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
LAB = str(ROOT / "inventory" / "lab.py")
UNIT = "vllm-main"
_DROP_IN = f"/etc/systemd/system/{UNIT}.service.d/pace.conf"
_COMMAND = "init=$(docker inspect -f '{{.State.Pid}}' vllm-main); command=$(pgrep -P $init)"
_ALL = "docker top vllm-main -eo pid | tail -n +2 | tr -d ' '"


@dataclass(frozen=True)
class Gang:
    """``pace``: the factor on all waits of the agents; ``start``: seconds a start may take."""

    layout: Layout
    pace: float
    start: float = 60

    def ask(self, rank: int, command: str, stdin: str | None = None) -> str:
        return ssh.ask(self.layout, self.layout.machines[rank], command, stdin).strip()

    def look(self, rank: int, command: str) -> str:
        """As :meth:`ask`, whatever comes of it."""
        return ssh.look(self.layout, self.layout.machines[rank], command).stdout.strip()

    def each(self, command: str, ranks: Iterable[int] = range(4)) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda rank: self.ask(rank, command), ranks))

    def deploy(self, recipe: str) -> str:
        """Run the deploy of a recipe in this folder or of the project; its output."""
        return self.apply("recipe.py", f"recipe={recipe}")

    def apply(self, file: str, *data: str, inventory: str = LAB) -> str:
        """Run a deploy file of the project; its output."""
        run = self.begin(file, *data, inventory=inventory)
        output = run.communicate()[0]
        assert run.returncode == 0, output[-3000:]
        return output

    def fails(self, file: str, *data: str, inventory: str = LAB) -> str:
        """Run a deploy file that must fail; its output."""
        run = self.begin(file, *data, inventory=inventory)
        output = run.communicate()[0]
        assert run.returncode == 1, output[-3000:]
        return output

    def begin(
        self, file: str, *data: str, inventory: str = LAB, folder: Path = HERE
    ) -> subprocess.Popen[str]:
        """A deploy file of the project that runs."""
        return subprocess.Popen(
            [
                str(Path(sys.executable).with_name("pyinfra")), "-y",
                inventory,
                str(ROOT / "deploys" / file),
                *(word for pair in data for word in ("--data", pair)),
            ],
            cwd=folder,
            env={
                **os.environ,
                "PYINFRA_VLLM_LAB": self.layout.name,
                "PYINFRA_PROGRESS": "off",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    def set_pace(self) -> None:
        """All waits of the agents shorter, by one drop-in of their unit."""
        lines = f"[Service]\\nEnvironment=PYINFRA_VLLM_PACE={self.pace}\\nWatchdogSec=5\\n"
        folder = _DROP_IN.rpartition("/")[0]
        self.each(
            f"mkdir -p {folder} && printf '{lines}' > {_DROP_IN} && systemctl daemon-reload "
            f"&& {{ systemctl try-restart {UNIT} || true; }}"
        )

    def status(self, rank: int = 0) -> dict[str, Any]:
        """What the agent of a rank says; empty while the node is away."""
        text = self.look(rank, "cat /run/pyinfra-vllm/main/status.json 2>/dev/null")
        try:
            return dict(json.loads(text))
        except ValueError:
            return {}

    def complete(self, prompt: str = "The answer is", seconds: float = 20, machine: int = 0) -> str:
        """The greedy text; OSError while the gang doesn't answer."""
        body = {"model": "tiny", "prompt": prompt, "max_tokens": 16, "temperature": 0}
        request = urllib.request.Request(
            f"http://{self.layout.machines[machine].address}:8000/v1/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return str(json.load(answer)["choices"][0]["text"])

    def metrics(self) -> dict[str, str]:
        """The engine's own metrics by name; of those with labels, all that are told."""
        url = f"http://{self.layout.machines[0].address}:8000/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line[:1] != "#"]
        found: dict[str, str] = {}
        for line in lines:
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            found[name] = f"{found.get(name, '')} {value}".strip()
        return found

    def wait_serving(self, after: int, seconds: float) -> dict[str, Any]:
        """The head's status once it serves in a start later than ``after``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.status()
            if status.get("phase") == "serving" and status["start"] > after:
                return status
            time.sleep(max(0.5, 2 * self.pace))  # a look costs the processor of the engines
        every = "\n".join(f"rank {rank}: {self.status(rank)}" for rank in range(4))
        log = self.look(0, f"journalctl -q -o cat -n 40 -u {UNIT}")
        raise AssertionError(f"not serving after {seconds:.0f} s\n{every}\n{log}")

    def main_pid(self, unit: str) -> str:
        return f"$(systemctl show -p MainPID --value {unit})"

    def kill_engine(self, rank: int, signal: str = "KILL") -> None:
        """Signal to the engine: all that runs below the command of the container."""
        self.ask(rank, f"{_COMMAND}; kill -{signal} $({_ALL} | grep -vxF -e $init -e $command)")

    def kill_command(self, rank: int, signal: str = "KILL") -> None:
        """Signal to the command of the container alone: on the head the API server."""
        self.ask(rank, f"{_COMMAND}; kill -{signal} $command")

    def power_cut(self, *ranks: int) -> None:
        for rank in ranks:
            machine.kill(self.layout, self.layout.machines[rank])

    def power_on(self) -> None:
        """Switch on what is off. A machine whose network end isn't cleared yet goes off again."""
        for left in (2, 1, 0):
            try:
                commands.up(self.layout.name, with_images=False)
            except UserError:
                if not left:
                    raise
                time.sleep(2)
            else:
                return

    def reboot(self, *ranks: int) -> None:
        """Reboot nodes in order, all at once; returns when they answer again."""
        nodes = [self.layout.machines[rank] for rank in ranks]
        ended = [machine.reboot(self.layout, node) for node in nodes]
        while any(Path(f"/proc/{pid}").exists() for pid in ended):
            time.sleep(0.1)
        self.power_on()

    def later(self, rank: int, script: str) -> None:
        """Run a script on the node that outlives the connection."""
        self.ask(rank, f"systemd-run --quiet --collect /bin/sh -c '{script}'")

    def forget_starts(self) -> None:
        """Earlier faults cost no back-off in the next test."""
        self.ask(
            0,
            'cd /var/lib/pyinfra-vllm/main && python3 -c "import json; d = json.load(open('
            "'starts.json')); d.update(collapses=[], deaths=[]); "
            "json.dump(d, open('starts.json', 'w'))\"",
        )
