"""``launch.json``: how this rank of a release is started. Nothing else is needed for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import document, paths
from .document import Document
from .errors import Unmet


@dataclass(frozen=True)
class Mount:
    """A bind mount; ``create``: the source is made when it is missing, else it must be there."""

    source: str
    target: str
    read_only: bool
    create: bool


@dataclass(frozen=True)
class Api:
    """Where the head answers, as the head itself reaches it, and the model's public name."""

    address: str
    port: int
    model: str


@dataclass(frozen=True)
class Launch:
    """One rank of one release. ``build`` None: the image is found by its tag."""

    gang: str
    release: str
    recipe: str
    rank: int
    size: int
    build: str | None
    tag: str
    container: str
    labels: dict[str, str]
    options: tuple[str, ...]
    mounts: tuple[Mount, ...]
    environ: dict[str, str]
    argv: tuple[str, ...]
    composed: str | None
    api: Api
    start_timeout: int
    secrets: tuple[str, ...] = ()
    """Names of variables whose values are in the node's own file."""

    @property
    def is_head(self) -> bool:
        """Whether this is rank 0, the one that answers requests."""
        return self.rank == 0


def _mounts(source: Document) -> tuple[Mount, ...]:
    return tuple(
        Mount(
            source=item.path_of("source"),
            target=item.path_of("target"),
            read_only=item.flag("read_only"),
            create=item.flag("create"),
        )
        for item in source.tables("mounts")
    )


def _api(source: Document) -> Api:
    return Api(
        address=source.text("address"),
        port=source.number("port"),
        model=source.text("model"),
    )


def parse(source: Document) -> Launch:
    """The launch that ``source`` describes; Unmet names the first key that is wrong."""
    image = source.table("image")
    launch = Launch(
        gang=source.text("gang"),
        release=source.text("release"),
        recipe=source.text("recipe"),
        rank=source.number("rank"),
        size=source.number("size"),
        build=image.text("build") if image.has("build") else None,
        tag=image.text("tag"),
        container=source.text("container"),
        labels=source.strings("labels"),
        options=source.words("options"),
        mounts=_mounts(source),
        environ=source.strings("environ"),
        argv=source.words("argv"),
        composed=source.table("composed").path_of("directory") if source.has("composed") else None,
        api=_api(source.table("api")),
        start_timeout=source.number("start_timeout"),
        secrets=source.words("secrets") if source.has("secrets") else (),
    )
    _check(launch, source.file)
    return launch


def _check(launch: Launch, file: str) -> None:
    label = launch.labels.get(paths.LABEL_GANG)
    if not launch.argv:
        raise Unmet(f"{file}: argv: is empty; run the deploy again")
    if not 0 <= launch.rank < launch.size:
        raise Unmet(f"{file}: rank: {launch.rank} is not below size {launch.size}")
    if label != launch.gang:
        raise Unmet(
            f"{file}: labels: {paths.LABEL_GANG} is {label!r}, expected {launch.gang!r}; "
            "without it the agent could not find its own container"
        )


def load(release: Path, gang: str | None = None) -> Launch:
    """The launch in the folder ``release``; Unmet when it is broken or of another gang."""
    launch = parse(document.read(release / paths.LAUNCH))
    if gang is not None and launch.gang != gang:
        raise Unmet(f"{release / paths.LAUNCH}: gang: is {launch.gang!r}, expected {gang!r}")
    return launch
