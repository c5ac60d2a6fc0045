"""Scripts sent to nodes of a lab on standard input, as deploys send them."""

from __future__ import annotations

import subprocess

from pyinfra_vllm.lab import ssh

from .conftest import Lab


def begin(lab: Lab, script: str, rank: int = 0) -> subprocess.Popen[str]:
    argv = ssh.argv(lab.layout, lab.machines[rank], "python3 - pyinfra-vllm.image.v1")
    started = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdin is not None
    started.stdin.write(script)
    started.stdin.close()
    started.stdin = None
    return started


def ran(lab: Lab, script: str, rank: int = 0) -> tuple[int, str, str]:
    started = begin(lab, script, rank)
    out, err = started.communicate(timeout=120)
    return started.returncode, out, err
