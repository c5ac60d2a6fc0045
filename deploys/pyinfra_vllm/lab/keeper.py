"""Keeps one machine running: ``python -m pyinfra_vllm.lab.keeper LAB RANK``.

A ``reboot`` inside ends systemd-nspawn with 133; it is started again then. A
``poweroff`` inside, or nspawn's own failure, ends the keeper: the node is off.
"""

from __future__ import annotations

import os
import subprocess
import sys

from pyinfra_vllm.lab import machine as power
from pyinfra_vllm.lab import state
from pyinfra_vllm.lab.layout import Layout, Machine

_REBOOTED = 133


def nspawn(layout: Layout, machine: Machine) -> list[str]:
    """The command line of one boot.

    All capabilities and the system calls of dockerd are granted; the unit and
    the registration belong to a host's systemd, which may not be there.
    """
    return [
        "systemd-nspawn",
        "--quiet",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--console=pipe",
        f"--directory={layout.root(machine)}",
        f"--machine={machine.name}",
        f"--network-bridge={layout.bridge}",
        f"--bind={layout.disk(machine)}/docker:/var/lib/docker",
        f"--bind-ro={layout.nas}:/mnt/nas",
        "--capability=all",
        "--system-call-filter=@keyring bpf",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
    ]


def environ() -> dict[str, str]:
    """nspawn's own environment: /tmp stays on the node's root, as on a node of metal."""
    return os.environ | {"SYSTEMD_NSPAWN_TMPFS_TMP": "0"}


def forget_link(machine: Machine) -> None:
    """Remove this side's end of the link of a boot before, which may outlive it for a minute."""
    subprocess.run(
        ["ip", "link", "delete", f"vb-{machine.name}"], stderr=subprocess.DEVNULL, check=False
    )


def main(words: list[str]) -> int:
    name, rank = words
    layout = state.require(name)
    machine = layout.machines[int(rank)]
    power.keepers(layout).join()
    group = power.group(layout, machine)
    while True:
        group.create()
        forget_link(machine)
        done = subprocess.run(
            nspawn(layout, machine),
            stdin=subprocess.DEVNULL,
            env=environ(),
            preexec_fn=group.join,
            check=False,
        )
        print(f"{machine.name}: systemd-nspawn ended with {done.returncode}", flush=True)
        if done.returncode != _REBOOTED:
            return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
