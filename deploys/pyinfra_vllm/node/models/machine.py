"""The machine, its network and who listens there."""

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


class Listener(Model):
    """A process on the API port; ``pid`` 0: it can't be seen. ``command`` has secrets masked.

    ``container`` is the name of the container that it belongs to or (docker-proxy) serves.
    """

    pid: int
    process: str = ""
    command: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    container: str | None = None
    container_id: str | None = None


class Interface(Model):
    """``speed`` in Mb/s, None where the link has none."""

    name: str
    addresses: tuple[str, ...] = ()
    mtu: int = 0
    state: str = ""
    mac: str = ""
    speed: int | None = None
