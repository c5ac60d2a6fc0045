"""The state of a node as its script prints it (schema 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import Field, ValidationError

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.models import (
    Agent,
    Clock,
    Composed,
    Container,
    Copy,
    Disk,
    Docker,
    FileState,
    GangFolder,
    Gpus,
    Image,
    Interface,
    Leftovers,
    Listener,
    Metrics,
    Mount,
    Past,
    PathState,
    Peer,
    Pending,
    Process,
    Rdma,
    Release,
    Rule,
    SecretFile,
    Snapshot,
    System,
    Unit,
)
from pyinfra_vllm.node.part import Model, Part
from pyinfra_vllm.node.query import Query

SCHEMA = 1
_SHOWN = 300
P = TypeVar("P", PathState, FileState, Composed)


class NodeState(Model):
    """Everything that one look at a node tells. Each part may be absent and says why.

    ``received`` is the controller's clock when the document came. ``assumed``: nothing was
    read, and this stands for a node in a plan.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    query: Query = Query()
    system: Part[System] = Part[System]()
    disks: Part[dict[str, Disk]] = Part[dict[str, Disk]]()
    docker: Part[Docker] = Part[Docker]()
    images: Part[tuple[Image, ...]] = Part[tuple[Image, ...]]()
    containers: Part[tuple[Container, ...]] = Part[tuple[Container, ...]]()
    unit: Part[Unit] = Part[Unit]()
    gang: Part[GangFolder] = Part[GangFolder]()
    agent: Part[Agent] = Part[Agent]()
    secrets: Part[SecretFile] = Part[SecretFile](ok=True, value=SecretFile())
    files: Part[dict[str, FileState]] = Part[dict[str, FileState]]()
    snapshots: Part[tuple[Snapshot, ...]] = Part[tuple[Snapshot, ...]]()
    local_files: Part[dict[str, PathState]] = Part[dict[str, PathState]]()
    copies: Part[dict[str, Copy]] = Part[dict[str, Copy]](ok=True, value={})
    composed: Part[dict[str, Composed]] = Part[dict[str, Composed]]()
    listeners: Part[tuple[Listener, ...]] = Part[tuple[Listener, ...]]()
    interfaces: Part[tuple[Interface, ...]] = Part[tuple[Interface, ...]]()
    rdma: Part[Rdma] = Part[Rdma]()
    gpus: Part[Gpus] = Part[Gpus]()
    mounts: Part[dict[str, Mount | None]] = Part[dict[str, Mount | None]]()
    sysctls: Part[dict[str, str | None]] = Part[dict[str, str | None]]()
    clock: Part[Clock] = Part[Clock]()
    pending: Part[Pending] = Part[Pending]()
    peers: Part[dict[str, Peer]] = Part[dict[str, Peer]]()
    engines: Part[tuple[Process, ...]] = Part[tuple[Process, ...]]()
    ageing: Part[tuple[Rule, ...]] = Part[tuple[Rule, ...]]()
    leftovers: Part[Leftovers] = Part[Leftovers]()
    past: Part[Past] = Part[Past](ok=True, value=Past())
    metrics: Part[Metrics | None] = Part[Metrics | None](ok=True)
    received: float | None = None
    assumed: bool = False

    @property
    def known(self) -> bool:
        """False for the blank state of a node that was not read."""
        return self.system.ok

    def failures(self) -> dict[str, str]:
        """Part -> why it could not be read, in the order of the document."""
        parts = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            name: part.reason
            for name, part in parts.items()
            if isinstance(part, Part) and not part.ok
        }

    def file(self, path: str) -> FileState | None:
        """One of the files asked for; None when it isn't there. UserError: files can't be read."""
        return _asked(self.files.required, path)

    def local_file(self, path: str) -> PathState | None:
        """One of the local files asked for; None when it isn't there."""
        return _asked(self.local_files.required, path)

    def release(self, digest: str) -> Release | None:
        """A release of the gang."""
        return self.gang.required.releases.get(digest)

    @property
    def current_release(self) -> str | None:
        """Digest of the release that ``current`` names."""
        return self.gang.required.current_release

    def image_of(self, build: str, tag: str = "") -> Image | None:
        """The image that carries this build digest; of several the one with the tag, as agents do.

        Else the newest, which docker lists first.
        """
        found = [image for image in self.images.required if image.build == build]
        named = (image for image in found if _whole(tag) in image.tags)
        return next(named, found[0] if found else None)

    def image_tagged(self, tag: str) -> Image | None:
        """The image with this tag; ``:latest`` is understood when the tag has no version."""
        found = (image for image in self.images.required if _whole(tag) in image.tags)
        return next(found, None)

    def container(self, name: str) -> Container | None:
        """A container of ours, or a foreign one that has a GPU or the API port."""
        found = (item for item in self.containers.required if item.name == name)
        return next(found, None)

    def snapshot(self, repo: str, revision: str | None = None) -> Snapshot | None:
        """The answer to the question for this repo and revision; None: it was not asked."""
        found = (
            item
            for item in self.snapshots.required
            if item.repo == repo and revision in (item.asked, item.revision)
        )
        return next(found, None)

    def composed_directory(self, path: str) -> Composed | None:
        """A composed model asked for; None when the directory isn't there."""
        return _asked(self.composed.required, path)

    def has_address(self, address: str) -> bool:
        """Whether an interface of the node has this address."""
        return any(address in interface.addresses for interface in self.interfaces.required)

    @property
    def tmp_is_one_device(self) -> bool:
        """Whether a hard link from /var/tmp to /tmp is possible."""
        disks = self.disks.required
        return disks["/tmp"].device == disks["/var/tmp"].device


def _asked(found: Mapping[str, P], path: str) -> P | None:
    if path not in found:
        raise LookupError(f"the node was not asked about {path}")
    return found[path] if found[path].exists else None


def parse(text: str) -> NodeState:
    """The state in what the script printed, lines around it ignored, or in a saved document.

    UserError when there is no such document (its first characters are shown) or when it
    isn't what this schema describes (the first wrong key is named).
    """
    printed = (line for line in text.splitlines() if line.startswith('{"schema"'))
    document = next(printed, text.strip())
    if not document.startswith("{"):
        raise UserError(f"the node printed no state document but: {document[:_SHOWN] or 'nothing'}")
    try:
        return NodeState.model_validate(json.loads(document))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"the state document of the node is not understood: {where}: {first['msg']}"
        ) from error
    except ValueError as error:
        raise UserError(f"the node's state is cut off or no JSON: {document[:_SHOWN]}") from error


def _whole(tag: str) -> str:
    """A tag as docker shows it."""
    return tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest"
