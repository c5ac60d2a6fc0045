"""Script for a node: wherever WORD stands that people or programs read. WORD is put before it."""

import subprocess
import sys
from pathlib import Path

WORD: str = globals().get("WORD", "")
FOLDERS = (
    "/var/lib/pyinfra-vllm",
    "/run/pyinfra-vllm",
    "/etc",
    "/usr/local",
    "/var/log",
    "/tmp",
    "/run/systemd",
)
COMMANDS = (
    ["journalctl", "--no-pager", "--output", "export"],
    ["systemctl", "show", "vllm-main"],
    ["docker", "inspect", "--format", "{{json .Config.Labels}} {{json .Args}}", "vllm-main"],
    ["docker", "image", "inspect", "fidelity:1"],
    ["docker", "events", "--since", "24h", "--until", "0s"],
)


def has(path: Path) -> bool:
    try:
        return WORD.encode() in path.read_bytes()
    except OSError:
        return False


if not WORD:
    sys.exit("no word is given")
files = [path for folder in FOLDERS for path in Path(folder).rglob("*") if path.is_file()]
processes = list(Path("/proc").glob("[0-9]*/cmdline"))
for path in (*files, *processes):
    if has(path):
        print(path)
for command in COMMANDS:
    done = subprocess.run(command, capture_output=True, check=False)
    if WORD.encode() in done.stdout + done.stderr:
        print(*command)
