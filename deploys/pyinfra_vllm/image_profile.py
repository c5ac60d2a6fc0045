"""The source lock of an image: the schema of ``templates/images/<dir>/profiles/<name>.toml``.

Any text in it may be ``todo``: a fact that isn't known yet. Such a profile
renders and lints; it refuses to build and lists what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from pyinfra_vllm import toml, words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.validation import ContradictionError, describe, got, shown

TODO = "todo"
"""What stands for a fact that isn't known yet."""


def _known_or_todo(pattern: str, expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if text != TODO and not re.fullmatch(pattern, text):
            raise ValueError(f'expected {expected}, or "{TODO}" while unknown, got {got(text)}')
        return text

    return AfterValidator(check)


def _frozen_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_List = BeforeValidator(_frozen_list)
Name = Annotated[str, AfterValidator(words.folder)]
Line = Annotated[str, AfterValidator(words.filled)]
Reference = Annotated[str, AfterValidator(words.image)]
Digest = Annotated[str, _known_or_todo("sha256:[0-9a-f]{64}", "sha256: and 64 hex digits")]
Sha256 = Annotated[str, _known_or_todo("[0-9a-f]{64}", "64 hex digits")]
GitHash = Annotated[str, _known_or_todo("[0-9a-f]{40}", "a full hash of 40 hex digits")]
Pin = Annotated[str, _known_or_todo(r"[0-9A-Za-z][0-9A-Za-z.+~:!-]*", "one version")]
Waiver = Annotated[
    str, _known_or_todo(r"[\w.-]+:[\w.-]+", 'a distribution and what it declares, as "a:b"')
]
Gpu = Annotated[str, _known_or_todo(r"\d+\.\d[af]?", "a compute capability such as 12.1a")]
Positive = Annotated[int, AfterValidator(words.positive)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Image(_Table):
    """An image that the Dockerfile starts from or copies from."""

    name: Name = Field(description="the name that the Dockerfile knows it by")
    reference: Reference = Field(description="the image, as repository:tag")
    digest: Digest | None = Field(
        default=None, description="its digest; left out for an image that no registry holds"
    )

    @property
    def pinned(self) -> str:
        """What FROM is given; with something still to do, text that lints."""
        if self.reference == TODO:
            return f"{TODO}:{TODO}"
        if self.digest in (None, TODO):
            return self.reference
        return f"{self.reference}@{self.digest}"


class Target(_Table):
    """What the image runs on; asserted at the end of the build."""

    machine: Line = Field(description="what uname -m prints, such as aarch64")
    python: Line = Field(description="Python's version, such as 3.11")
    cuda: Line | None = Field(default=None, description="CUDA's version that torch was built for")
    gpus: Annotated[tuple[Gpu, ...], _List] = Field(
        default=(), description="compute capabilities to compile for"
    )


class Source(_Table):
    """A repository at one commit, fetched by it and compared with it."""

    name: Name = Field(description="the name that the Dockerfile knows it by")
    repository: Line = Field(description="where git fetches it from")
    commit: GitHash = Field(description="the full commit")
    tree: GitHash = Field(description="the hash of the commit's tree")


class Patch(_Table):
    """A patch of an installed Python package."""

    package: Line = Field(description="the distribution that is patched")
    file: Line = Field(description="the patch, a file in the image's context/")
    sha256: Sha256 = Field(description="the patch's hash")


class Apt(_Table):
    """Debian packages and their exact versions."""

    build: dict[str, Pin] = Field(default_factory=dict, description="what only the build needs")
    runtime: dict[str, Pin] = Field(default_factory=dict, description="what the image keeps")


class Resources(_Table):
    """What a build may use. It never shapes the result, so no digest covers it."""

    job_gib: Positive | None = Field(
        default=None, description="memory to reckon with for one compile job, in GiB"
    )
    disk_gib: Positive | None = Field(
        default=None, description="room that the build needs on docker's disk, in GiB"
    )
    memory_gib: Positive | None = Field(
        default=None, description="memory that the build takes at its peak, in GiB"
    )
    minutes: Positive | None = Field(default=None, description="how long a build takes")


class Profile(_Table):
    """Everything that decides what an image holds."""

    images: Annotated[tuple[Image, ...], _List] = Field(
        description="the images that the build starts from, as [[images]] tables"
    )
    target: Target = Field(description="what the image runs on, as a table")
    requirements: Line | None = Field(
        default=None, description="a file in context/: every Python package, with version and hash"
    )
    versions: dict[str, Pin] = Field(
        default_factory=dict, description="Python distributions and the version they must have"
    )
    libraries: dict[str, Pin] = Field(
        default_factory=dict, description="pkg-config modules and the version they must have"
    )
    imports: Annotated[tuple[Line, ...], _List] = Field(
        default=(), description="modules that must import at the end of the build"
    )
    compiled: Annotated[tuple[Line, ...], _List] = Field(
        default=(), description="distributions whose libraries must hold code for target.gpus"
    )
    waived: Annotated[tuple[Waiver, ...], _List] = Field(
        default=(), description='requirements that the lock breaks on purpose, as "vllm:xformers"'
    )
    apt: Apt = Apt()
    sources: Annotated[tuple[Source, ...], _List] = ()
    patches: Annotated[tuple[Patch, ...], _List] = ()
    resources: Resources | None = None
    deviations: Annotated[tuple[Line, ...], _List] = Field(
        default=(), description="where the image differs from what its authors publish"
    )
    known_defects: Annotated[tuple[Line, ...], _List] = Field(
        default=(), description="faults of these versions that their users should know"
    )

    @model_validator(mode="after")
    def _names_are_unique(self) -> Profile:
        problems = [
            *_repeated("images", [image.name for image in self.images]),
            *_repeated("sources", [source.name for source in self.sources]),
        ]
        if problems:
            raise ContradictionError(problems)
        return self

    def checks(self) -> tuple[str, ...]:
        """The options of ``shared/verify.py`` that prove the finished image."""
        target = self.target
        return (
            f"--machine {target.machine}",
            f"--python {target.python}",
            *((f"--cuda {target.cuda}",) if target.cuda else ()),
            *(f"--version {name}={version}" for name, version in self.versions.items()),
            *(f"--library {name}={version}" for name, version in self.libraries.items()),
            *(f"--import {module}" for module in self.imports),
        )

    def missing(self) -> tuple[str, ...]:
        """Key paths of all that is ``todo``, tables in a list by name: ``sources[vllm].tree``."""
        return tuple(_todo(self.model_dump(), ""))


def load(path: Path) -> Profile:
    """The profile in ``path``. UserError lists every mistake with file and key."""
    table = toml.read(path)
    try:
        return Profile.model_validate(table)
    except ValidationError as error:
        raise UserError(describe(error, Profile, shown(path))) from None


def _repeated(table: str, names: list[str]) -> Iterator[tuple[str, str]]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{table}[{index}].name", f"{got(name)} is there twice"


def _todo(value: object, path: str) -> Iterator[str]:
    if value == TODO:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _todo(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            name = inner.get("name", index) if isinstance(inner, dict) else index
            yield from _todo(inner, f"{path}[{name}]")
