"""Script for a node: start each launch.json given as the agent would, and tell what arrived.

Standard input: {"archive": path of agent.pyz, "image": …, "seccomp": path, "launches": [...]}.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

GIVEN = json.loads(sys.stdin.read())
sys.path.insert(0, GIVEN["archive"])

from pyinfra_vllm.agent import container, secret_values  # noqa: E402
from pyinfra_vllm.agent.document import Document  # noqa: E402
from pyinfra_vllm.agent.launch import parse  # noqa: E402


def run(case: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    number, document = case
    launch = parse(Document("launch.json", document))
    for mount in launch.mounts:
        Path(mount.source).mkdir(parents=True, exist_ok=True)
    argv = container.run(launch, GIVEN["image"])
    options = argv[: argv.index("--entrypoint")]
    # Side by side: each with a name of its own, and all with one copy of the profile.
    options[options.index("--name") + 1] = f"fidelity-{number}"
    profile = next(word for word in options if word.startswith("seccomp="))
    options[options.index(profile)] = f"seccomp={GIVEN['seccomp']}"
    words = [*options, "--rm", *argv[len(options) :]]
    environ = secret_values.environ(launch.gang, words)
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n")
    if done.returncode or len(lines) != 3:
        return {"error": done.stderr[-2000:] or done.stdout[-2000:]}
    return {"argv": lines[0], "environ": lines[1]}


with ThreadPoolExecutor(2) as pool:
    json.dump(list(pool.map(run, enumerate(GIVEN["launches"]))), sys.stdout)
