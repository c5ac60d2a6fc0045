"""What our deploys put on the node."""

from __future__ import annotations

from pydantic import Field

from pyinfra_vllm.node.models.files import FileState, PathState
from pyinfra_vllm.node.part import Model


class Unit(Model):
    """``systemctl show``; ``load`` is ``not-found`` when there is no such unit."""

    load: str
    active: str
    sub: str
    enabled: str
    path: str
    drop_ins: tuple[str, ...] = ()
    drop_in_keys: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    needs_reload: bool = False
    main_pid: int = 0
    restarts: int = 0
    result: str = ""
    exit_status: int = 0
    status_text: str = ""
    active_since: int | None = None
    invocation: str = ""
    protect_system: str = ""
    private_tmp: bool = False

    @property
    def exists(self) -> bool:
        return self.load == "loaded"

    @property
    def is_active(self) -> bool:
        return self.active == "active"

    @property
    def is_enabled(self) -> bool:
        return self.enabled == "enabled"


class Release(PathState):
    files: dict[str, FileState] = Field(default_factory=dict)


class GangFolder(Model):
    """``current`` is the text of that link, ``strangers`` are no releases but lie among them."""

    current: str | None = None
    releases: dict[str, Release] = Field(default_factory=dict)
    strangers: tuple[str, ...] = ()
    entries: dict[str, PathState] = Field(default_factory=dict)

    @property
    def current_release(self) -> str | None:
        """The digest that ``current`` names."""
        return self.current.rstrip("/").rpartition("/")[2] if self.current else None


class SecretFile(Model):
    """Values of secret variables as salted hashes; ``in_use``: the engine got the same one."""

    exists: bool = False
    mode: str = ""
    owner: str = ""
    salt: str = ""
    digests: dict[str, str] = Field(default_factory=dict)
    in_use: dict[str, bool] = Field(default_factory=dict)


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
    start: int | None = None
    switch: int = 0
    passed: str = ""
    note: str = ""


class Agent(Model):
    """The installed agent (``sha256`` None: there is none) and the status of the running one."""

    sha256: str | None = None
    mode: str | None = None
    status: AgentStatus | None = None


class Leftovers(Model):
    """Names of what lies on the node: gangs, units, composed models (``gang/release``)."""

    gangs: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    composed: tuple[str, ...] = ()
    share: bool = False
