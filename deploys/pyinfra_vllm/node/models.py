"""The parts of the node state. Sizes are bytes, times Unix seconds, modes octal text (``0644``)."""

from __future__ import annotations

from typing import Literal

from pyinfra_vllm.node.part import Model

FileType = Literal["file", "directory", "link", "other", "missing"]


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


class Docker(Model):
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


class Image(Model):
    """``build`` is the build digest of its label; ``layers`` name the content on every node."""

    id: str
    tags: tuple[str, ...] = ()
    build: str | None = None
    layers: tuple[str, ...] = ()
    size: int = 0
    architecture: str = ""
    created: str = ""


class Mount(Model):
    source: str
    target: str
    read_only: bool


class Container(Model):
    """``labels`` are only those of pyinfra-vllm; ``ours``: it belongs to some gang."""

    id: str
    name: str
    image: str
    image_name: str = ""
    labels: dict[str, str] = {}
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
    mounts: tuple[Mount, ...] = ()

    @property
    def running(self) -> bool:
        return self.state == "running"


class Unit(Model):
    """``systemctl show``; ``load`` is ``not-found`` when there is no such unit."""

    load: str
    active: str
    sub: str
    enabled: str
    path: str
    drop_ins: tuple[str, ...] = ()
    needs_reload: bool = False
    main_pid: int = 0
    restarts: int = 0
    result: str = ""
    exit_status: int = 0
    status_text: str = ""
    active_since: int | None = None
    invocation: str = ""

    @property
    def exists(self) -> bool:
        return self.load == "loaded"

    @property
    def is_active(self) -> bool:
        return self.active == "active"

    @property
    def is_enabled(self) -> bool:
        return self.enabled == "enabled"


class PathState(Model):
    """A path, links not followed. ``allocated`` is what is on disk of a sparse file."""

    exists: bool
    type: FileType
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    size: int = 0
    allocated: int = 0
    device: int = 0
    inode: int = 0
    links: int = 0
    modified: float = 0.0


class FileState(PathState):
    """``text`` only for UTF-8 up to 64 KiB that every user of the node may read."""

    sha256: str | None = None
    text: str | None = None
    target: str | None = None


class Release(PathState):
    files: dict[str, FileState] = {}


class GangFolder(Model):
    """``current`` is the text of that link, ``strangers`` are no releases but lie among them."""

    current: str | None = None
    releases: dict[str, Release] = {}
    strangers: tuple[str, ...] = ()
    entries: dict[str, PathState] = {}

    @property
    def current_release(self) -> str | None:
        """The digest that ``current`` names."""
        return self.current.rstrip("/").rpartition("/")[2] if self.current else None


class LastFailure(Model):
    at: float = 0.0
    code: int | None = None
    release: str = ""
    detail: str = ""


class AgentStatus(Model):
    """What the running agent says; ``agent`` is the digest of the program that runs."""

    agent: str = ""
    pid: int = 0
    gang: str = ""
    release: str | None = None
    rank: int | None = None
    phase: str = ""
    since: float = 0.0
    detail: str = ""
    engine_started: float | None = None
    last_failure: LastFailure | None = None


class Agent(Model):
    """The installed agent (``sha256`` None: there is none) and the status of the running one."""

    sha256: str | None = None
    mode: str | None = None
    status: AgentStatus | None = None


class SnapshotEntry(Model):
    """``size`` None: the blob isn't there."""

    target: str | None = None
    blob: str | None = None
    size: int | None = None


class Snapshot(Model):
    """``revision`` is the commit, ``asked`` what was asked for, ``missing`` the files it lacks."""

    hub: str
    hub_exists: bool
    repo: str
    asked: str | None = None
    revision: str | None = None
    path: str | None = None
    exists: bool
    entries: dict[str, SnapshotEntry] = {}
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.exists and bool(self.entries) and not self.missing


class ComposedEntry(Model):
    type: FileType
    target: str | None = None
    device: int
    inode: int
    size: int = 0


class Composed(Model):
    """A composed model; ``device`` is where it is, or would be made."""

    exists: bool
    device: int
    entries: dict[str, ComposedEntry] = {}


class Listener(Model):
    """A process on the API port; ``pid`` 0: it can't be seen. ``command`` has secrets masked."""

    pid: int
    process: str = ""
    command: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    container: str | None = None


class Interface(Model):
    """``speed`` in Mb/s, None where the link has none."""

    name: str
    addresses: tuple[str, ...] = ()
    mtu: int = 0
    state: str = ""
    mac: str = ""
    speed: int | None = None
