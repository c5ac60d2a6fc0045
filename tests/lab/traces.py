"""What a lab leaves on the machine that it runs on."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pyinfra_vllm.lab.layout import STATE


def traces(name: str) -> dict[str, list[str]]:
    """All that a lab can leave on this machine, by kind; empty lists when there is nothing."""
    processes = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if any(
            sign in read(path).replace("\0", " ")
            for sign in (f"--machine={name}-", f"lab.keeper {name} ")
        )
    ]
    rules = [
        line
        for table in ("nat", "filter")
        for line in output("iptables", "-t", table, "-S").splitlines()
        if f"vl-{name} " in f"{line} "
    ]
    mounts = [
        line for line in read(Path("/proc/self/mountinfo")).splitlines() if f"/{name}/" in line
    ]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/pyinfra-vllm-lab.{name}.*")]
    links = [path.name for path in Path("/sys/class/net").glob(f"v[lb]-{name}*")]
    left = [str(path) for path in STATE.glob(name)]
    left += [str(path) for path in Path("/run/systemd/nspawn/propagate").glob(f"{name}-*")]
    return {
        "processes": processes,
        "mounts": mounts,
        "rules": rules,
        "groups": groups,
        "links": links,
        "files": left,
    }


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
