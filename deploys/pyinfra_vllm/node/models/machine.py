"""The machine: kernel, memory, disks, clock."""

from __future__ import annotations

from pyinfra_vllm.node.part import Model


class System(Model):
    hostname: str
    kernel: str
    architecture: str
    distribution: str = ""
    boot_id: str
    uptime: float = 0.0
    now: float
    uid: int
    python: str
    cpus: int = 0
    memory_total: int
    memory_available: int
    swap_total: int = 0
    swap_free: int = 0
    cma_total: int | None = None
    cma_free: int | None = None


class Disk(Model):
    """Space of a file system; ``free`` is what an ordinary user gets."""

    total: int
    free: int
    device: int


class Mount(Model):
    """A mounted file system."""

    mount_point: str
    type: str
    source: str = ""
    options: tuple[str, ...] = ()


class Clock(Model):
    """``synchronised`` with a time server; None when the kernel can't be asked."""

    synchronised: bool | None = None


class Pending(Model):
    """What is installed, which may not be what runs; None where it can't be told.

    ``reboot`` names the packages that ask for one; None when nothing does.
    """

    kernel: str | None = None
    driver: str | None = None
    docker: str | None = None
    reboot: tuple[str, ...] | None = None


class Rule(Model):
    """A line of tmpfiles.d(5) about ageing."""

    type: str
    path: str
    age: str | None = None


class Process(Model):
    """A process that looks like an inference engine; secrets of its command are masked."""

    pid: int
    command: tuple[str, ...] = ()
    user: str = ""
    memory: int = 0
    container_id: str | None = None
    unit: str | None = None
