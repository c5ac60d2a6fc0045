"""GPUs and who uses them."""

from __future__ import annotations

from pyinfra_vllm.node.part import Model


class Gpu(Model):
    """``capability`` as ``12.1``; sizes are None where the memory is the system's own (GB10)."""

    name: str
    capability: str | None = None
    memory_total: int | None = None
    memory_used: int | None = None


_HARMLESS = 1 << 30
"""Bytes."""


class GpuProcess(Model):
    """``type`` is C (compute), G (graphics) or C+G."""

    pid: int
    type: str = ""
    name: str = ""
    memory: int | None = None
    user: str = ""
    container_id: str | None = None
    unit: str | None = None

    @property
    def computes(self) -> bool:
        """Whether it takes the engine's memory: a desktop (type G) is no harm, nor is 1 GiB."""
        return self.type != "G" and (self.memory or 0) > _HARMLESS


class Gpus(Model):
    """``driver`` None: NVIDIA's kernel module isn't loaded. ``cuda``: the newest it can run.

    ``hooks`` are the programs that give GPUs to containers; ``error`` is why nvidia-smi
    couldn't answer.
    """

    driver: str | None = None
    cuda: str | None = None
    hooks: tuple[str, ...] = ()
    devices: tuple[Gpu, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    error: str = ""
