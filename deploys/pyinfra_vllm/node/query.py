"""What the state of a node is to tell about."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from pyinfra_vllm.agent import paths


class SnapshotQuery(BaseModel):
    """A snapshot of a model; ``hub`` is the folder that holds ``models--ORG--NAME``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hub: str
    repo: str
    revision: str | None = None


class CopyQuery(BaseModel):
    """A local copy of an Engram shard, the snapshots that may have the shard, and whose rows.

    ``first_rows``: (layer, first row of every rank), where the recipe has a split of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    sources: tuple[SnapshotQuery, ...]
    rank: int
    parallel_size: int
    first_rows: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Query(BaseModel):
    """What to look at beside the machine itself. Paths are absolute and as the node sees them.

    ``unit`` and ``status_path`` follow from ``gang`` unless given. ``releases`` are the digests
    whose files are wanted with their text beside those of ``current``; none given: all.
    ``ports`` are those that listeners are looked for on, the API's among them. ``peers`` are
    the other nodes' fabric addresses, which are tried at ``peer_port``. ``asked`` is the
    controller's clock when it asks. ``deadline`` is the time in seconds that each part has.
    ``environ`` are variables of our containers whose values are no secrets and are told.
    ``metrics`` are the seconds between two looks at the engine's metrics; None: no look.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gang: str = "main"
    unit: str = ""
    state_root: str = paths.STATE_ROOT
    agent_path: str = paths.AGENT
    status_path: str = ""
    label_build: str = paths.LABEL_BUILD
    label_gang: str = paths.LABEL_GANG
    releases: tuple[str, ...] = ()
    image_tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    snapshots: tuple[SnapshotQuery, ...] = ()
    local_files: tuple[str, ...] = ()
    copies: tuple[CopyQuery, ...] = ()
    composed: tuple[str, ...] = ()
    disks: tuple[str, ...] = (paths.STATE_ROOT, "/tmp", "/var/tmp")
    api_port: int | None = None
    ports: tuple[int, ...] = ()
    mounts: tuple[str, ...] = (paths.STATE_ROOT, paths.CACHE_ROOT, "/tmp", "/var/tmp")
    peers: tuple[str, ...] = ()
    peer_port: int = 9
    unit_root: str = paths.UNIT_ROOT
    composed_root: str = paths.COMPOSED_ROOT
    asked: float | None = None
    fabric_address: str | None = None
    deadline: float = 10.0
    metrics: float | None = None
    environ: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _names_of_the_gang(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        gang = given.get("gang", "main")
        derived: dict[str, object] = {
            "unit": paths.unit(gang),
            "status_path": paths.status_file(gang),
        }
        if given.get("api_port") and not given.get("ports"):
            derived["ports"] = (given["api_port"],)
        return {**derived, **{key: value for key, value in given.items() if value != ""}}
