"""dockerd, images, containers."""

from __future__ import annotations

from pydantic import Field

from pyinfra_vllm.node.models.machine import Disk
from pyinfra_vllm.node.part import Model


class Docker(Model):
    """``raises_limits``: it may give a container more than its own limits; None: not known."""

    version: str
    data_root: str
    data_root_disk: Disk
    storage_driver: str
    runtimes: tuple[str, ...] = ()
    default_runtime: str = ""
    cgroup_driver: str = ""
    cgroup_version: str = ""
    live_restore: bool = False
    security: tuple[str, ...] = ()
    raises_limits: bool | None = None


class Image(Model):
    """``build`` is the build digest of its label; ``layers`` name the content on every node.

    ``environ`` are the names of the variables that it sets; None: not told.
    """

    id: str
    tags: tuple[str, ...] = ()
    build: str | None = None
    layers: tuple[str, ...] = ()
    size: int = 0
    architecture: str = ""
    created: str = ""
    environ: tuple[str, ...] | None = None


class Bind(Model):
    """What a container sees of the node at ``target``."""

    source: str
    target: str
    read_only: bool


class Container(Model):
    """``labels`` are only those of pyinfra-vllm; ``ours``: it belongs to some gang.

    Of ours alone, None where not told: ``argv``, in which anything like a secret is masked,
    ``environ`` with the values of the variables that were asked for, the others by name only,
    ``options``, those of ``docker run`` that would confine it so, and ``layers`` of its image.
    """

    id: str
    name: str
    image: str
    image_name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    ours: bool
    state: str
    exit_code: int
    oom_killed: bool = False
    error: str = ""
    pid: int
    started_at: str = ""
    finished_at: str = ""
    network: str = ""
    gpu: bool = False
    uses_api_port: bool = False
    mounts: tuple[Bind, ...] = ()
    restart_policy: str = ""
    argv: tuple[str, ...] | None = None
    environ: dict[str, str | None] | None = None
    options: dict[str, tuple[str, ...]] | None = None
    layers: tuple[str, ...] | None = None

    @property
    def running(self) -> bool:
        return self.state == "running"
