"""The same nodes ensured by an Ansible playbook: files, links, image, unit and service.

    python tests/bench/ansible.py [RECIPE]

The lab (PYINFRA_VLLM_LAB) must serve the recipe already. The playbook is written from what
stands on the nodes, so that it has nothing to change either; ansible-core comes through uv.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from noop import PYINFRA, ROOT, seconds

from pyinfra_vllm.lab import ssh, state

Task = dict[str, Any]
BASE = "/var/lib/pyinfra-vllm/main"
UNIT = "vllm-main"
ALONE = (f"/etc/systemd/system/{UNIT}.service", "/etc/tmpfiles.d/pyinfra-vllm.conf")
CONFIG = (
    "[defaults]\nforks = 4\ngathering = explicit\n[ssh_connection]\npipelining = {pipelining}\n"
)

# Everything below the release and the composed model, as tasks for this node.
LOOK = f"""
import glob, json, os
release = os.path.realpath("{BASE}/current")
tasks = []
for path in [*glob.glob(release + "/*"), *{json.dumps(ALONE)}]:
    mode = oct(os.stat(path).st_mode & 0o7777)
    tasks.append(("copy", {{"dest": path, "content": open(path).read(), "mode": mode}}))
model = "/tmp/composed-models/main/" + os.path.basename(release)
local = {{os.stat(p).st_ino: p for p in glob.glob("/var/tmp/engram-local/*/*")}}
for path in glob.glob(model + "/**", recursive=True):
    if os.path.islink(path):
        tasks.append(("file", {{"path": path, "src": os.readlink(path), "state": "link"}}))
    elif os.path.isfile(path):
        source = local[os.stat(path).st_ino]
        tasks.append(("file", {{"path": path, "src": source, "state": "hard"}}))
print(json.dumps(tasks))
"""


def main() -> None:
    recipe = [*sys.argv[1:], "tiny-cpu-4x"][0]
    lab = state.require(os.environ.get("PYINFRA_VLLM_LAB", "lab"))
    play = []
    for machine in lab.machines:
        found = json.loads(ssh.ask(lab, machine, f"python3 -c '{LOOK}'"))
        play.append({"hosts": machine.name, "gather_facts": False, "tasks": _tasks(found)})
    with tempfile.TemporaryDirectory() as folder:
        playbook, hosts = Path(folder) / "play.json", Path(folder) / "hosts"
        playbook.write_text(json.dumps(_together(play)))
        hosts.write_text("".join(f"{machine.name}\n" for machine in lab.machines))
        for pipelining in (False, True):
            took = _ansible(playbook, hosts, str(lab.ssh_config), pipelining)
            tasks = len(play[0]["tasks"])
            print(f"ansible, {tasks} tasks, pipelining {pipelining!s:5}  {took:6.2f} s", flush=True)
    words = ("-y", "inventory/lab.py", "deploys/recipe.py", "--data", f"recipe={recipe}")
    print(f"deploy, nothing to change             {seconds(PYINFRA, *words):6.2f} s")


def _tasks(found: list[tuple[str, Task]]) -> list[Task]:
    image = {"cmd": "docker image inspect " + "$(docker ps -q --filter name=vllm-main | head -1)"}
    return [
        *({f"ansible.builtin.{module}": arguments} for module, arguments in found),
        {"ansible.builtin.shell": {**image}, "changed_when": False, "failed_when": False},
        {"ansible.builtin.systemd": {"name": UNIT, "state": "started", "enabled": True}},
    ]


def _together(plays: list[Task]) -> list[Task]:
    """One play for all nodes, so that they are worked on side by side."""
    first, *others = plays
    lengths = {len(play["tasks"]) for play in plays}
    assert len(lengths) == 1, "the nodes have as many files each"
    tasks = []
    for index, task in enumerate(first["tasks"]):
        variants = {play["hosts"]: play["tasks"][index] for play in plays}
        (module,) = (key for key in task if key.startswith("ansible."))
        choices = {host: other[module] for host, other in variants.items()}
        rest = {key: value for key, value in task.items() if key != module}
        keys = choices[first["hosts"]]
        arguments = {
            key: f"{{{{ choices[inventory_hostname].{key} }}}}" if others else value
            for key, value in keys.items()
        }
        tasks.append({module: arguments, "vars": {"choices": choices}, **rest})
    return [{"hosts": "all", "gather_facts": False, "tasks": tasks}]


def _ansible(playbook: Path, hosts: Path, ssh_config: str, pipelining: bool) -> float:
    config = playbook.with_name("ansible.cfg")
    config.write_text(CONFIG.format(pipelining=pipelining))
    command = ["uvx", "--quiet", "--from", "ansible-core", "ansible-playbook"]
    command += ["--inventory", str(hosts), "--ssh-common-args", f"-F {ssh_config}", str(playbook)]
    environ = {**os.environ, "ANSIBLE_CONFIG": str(config)}
    took = []
    for _ in range(2):  # the first fetches it
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
        took.append(time.monotonic() - began)
        assert done.returncode == 0 and "changed=0" in done.stdout, done.stdout[-2000:]
    return took[-1]


if __name__ == "__main__":
    main()
