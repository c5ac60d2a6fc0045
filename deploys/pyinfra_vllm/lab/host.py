"""What the lab needs of this machine: Linux, root, and a few Debian packages."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab.shell import Steps, note, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGE_OF_COMMAND = {
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "systemd-nspawn": "systemd-container",
}
_CAP_SYS_RESOURCE = 24
_INOTIFY_INSTANCES = 1024


def require(steps: Steps) -> None:
    """Check the platform and install what is missing; UserError where that can't be done."""
    if sys.platform != "linux":
        raise UserError(f"the lab needs Linux; this is {sys.platform}")
    require_root()
    packages = missing_packages()
    if not packages:
        return
    if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        raise UserError(
            "the lab installs its own packages on Debian and Ubuntu only; "
            f"install what provides these and try again: {', '.join(packages)}"
        )
    note(f"installing Debian packages: {', '.join(packages)}")
    with steps.step(f"packages installed: {', '.join(packages)}"):
        _install(packages)


def allow_many_watches() -> None:
    """Let all machines have their inotify instances: they share the host's limit for root.

    A booted machine takes about seven; with the kernel's default of 128 the fifth lab's
    units fail with "Too many open files" (inotify(7)). The limit is only ever raised.
    """
    limit = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(limit.read_text()) < _INOTIFY_INSTANCES:
        limit.write_text(f"{_INOTIFY_INSTANCES}\n")
        note(f"fs.inotify.max_user_instances raised to {_INOTIFY_INSTANCES}")


def require_root() -> None:
    if os.geteuid() != 0:
        raise UserError("the lab starts machines and needs root: run it with sudo")


def missing_packages() -> list[str]:
    """Debian packages of the commands that this machine lacks."""
    missing = {
        package for command, package in _PACKAGE_OF_COMMAND.items() if shutil.which(command) is None
    }
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    return sorted(missing)


def lacks_sys_resource() -> bool:
    """Whether containers on this machine can't raise rlimits (CAP_SYS_RESOURCE is missing)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapBnd:"):
            return not int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1
    return False


def _install(packages: list[str]) -> None:
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run(["apt-get", "--quiet", "update"])
    run(["apt-get", "--quiet", "--yes", "--no-install-recommends", "install", *packages])
