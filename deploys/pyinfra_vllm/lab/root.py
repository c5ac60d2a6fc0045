"""The root file system that all machines share as the lower layer of their overlays."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from pyinfra_vllm.lab import surroundings
from pyinfra_vllm.lab.layout import CACHE
from pyinfra_vllm.lab.shell import run, write

PACKAGES = (
    "ca-certificates",
    "curl",
    "dbus",
    "docker.io",
    "iproute2",
    "iptables",
    "iputils-ping",
    "kmod",
    "openssh-server",
    "procps",
    "python3",
    "sudo",
    "systemd",
    "systemd-sysv",
)
_TREE = Path(__file__).parent / "tree"
_ENABLED = ("lab-devices.service", "systemd-networkd.service")
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
)
_VERSION = 1
"""Raise it when this module makes something else from the same inputs."""


def cached() -> Path:
    """Where the root made from today's inputs is, or will be."""
    return CACHE / f"root-{_digest()}"


def make(target: Path) -> None:
    """Make the root (24 s and 450 MB, most of it mmdebstrap) beside ``target`` and rename it."""
    beside = target.with_name(target.name + ".new")
    shutil.rmtree(beside, ignore_errors=True)
    bootstrap(PACKAGES, beside)
    copy_tree(_TREE, beside)
    (beside / "etc/machine-id").write_text("")
    for key in (beside / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for unit in _ENABLED:
        _link(beside, f"multi-user.target.wants/{unit}", _unit_path(beside, unit))
    for unit in _MASKED:
        _link(beside, unit, "/dev/null")
    beside.rename(target)


def bootstrap(packages: tuple[str, ...], target: Path) -> None:
    """Debian bookworm with ``packages`` at ``target``: a folder, or an archive named .tar."""
    sources = CACHE / f"{target.name}.list"
    own = surroundings.apt_sources()
    write(sources, own)
    argv: list[str | Path] = [
        "mmdebstrap",
        "--variant=minbase",
        "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        *(f"--aptopt={line}" for line in surroundings.apt_options().splitlines()),
        *_certificate_hooks(),
        "--include=" + ",".join(packages),
        surroundings.SUITE,
        target,
        # Without a source of our own it takes Debian's mirrors: mmdebstrap(1), MIRROR.
        *([sources] if own else []),
    ]
    try:
        run(argv)
    finally:
        sources.unlink(missing_ok=True)


def inputs(packages: tuple[str, ...]) -> str:
    """Everything that decides what ``bootstrap`` makes, for a digest."""
    certificates = [path.read_text() for path in surroundings.local_cas()]
    return json.dumps(
        [packages, surroundings.apt_sources(), surroundings.apt_options(), certificates]
    )


def copy_tree(source: Path, target: Path) -> None:
    """Copy files below ``source`` over ``target``; those in a bin or sbin folder run."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            mode = 0o755 if path.parent.name in ("bin", "sbin") else 0o644
            write(target / path.relative_to(source), path.read_text(), mode)


def _certificate_hooks() -> list[str]:
    """Trust in the root what was added to the trust of this machine."""
    if not surroundings.local_cas():
        return []
    folder = surroundings.LOCAL_CAS
    return [
        *(f"--customize-hook=copy-in {path} {folder}" for path in surroundings.local_cas()),
        '--customize-hook=chroot "$1" update-ca-certificates',
    ]


def _digest() -> str:
    tree = {
        str(path.relative_to(_TREE)): path.read_text()
        for path in sorted(_TREE.rglob("*"))
        if path.is_file()
    }
    made_from = json.dumps([_VERSION, inputs(PACKAGES), tree, _ENABLED, _MASKED])
    return hashlib.sha256(made_from.encode()).hexdigest()[:16]


def _unit_path(root: Path, unit: str) -> str:
    local = f"/etc/systemd/system/{unit}"
    return local if (root / local.lstrip("/")).exists() else f"/lib/systemd/system/{unit}"


def _link(root: Path, name: str, to: str) -> None:
    path = root / "etc/systemd/system" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(to)
