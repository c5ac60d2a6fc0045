"""The kinds of values in a recipe, and the tables inside it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from pyinfra_vllm import words


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


FrozenList = BeforeValidator(_frozen)
Line = Annotated[str, AfterValidator(words.filled)]
Argument = Annotated[str, AfterValidator(words.argument)]
Word = Annotated[str, AfterValidator(words.first_word)]
Secret = Annotated[str, AfterValidator(words.secret)]
Value = Annotated[str, AfterValidator(words.value)]
Image = Annotated[str, AfterValidator(words.image)]
Folder = Annotated[str, AfterValidator(words.folder)]
Repo = Annotated[str, AfterValidator(words.repo)]
Revision = Annotated[str, AfterValidator(words.revision)]
AbsolutePath = Annotated[str, AfterValidator(words.absolute)]
MountPoint = Annotated[str, AfterValidator(words.mount)]
Size = Annotated[str, AfterValidator(words.size)]
Positive = Annotated[int, AfterValidator(words.positive)]
Measured = Annotated[float, AfterValidator(words.measured)]
Engine = Annotated[str, AfterValidator(words.engine), WithJsonSchema({"const": "vllm"})]
Backend = Annotated[str, AfterValidator(words.backend), WithJsonSchema({"const": "mp"})]


class Table(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Source(Table):
    """A repository whose whole snapshot is linked into the composed model."""

    repo: Repo = Field(description="Hugging Face repository, as org/name.")
    revision: Revision | None = Field(
        default=None,
        description="Commit, tag or branch of the repository; "
        "without it, what refs/main names in the cache of each node.",
    )
    override: bool = Field(
        default=False,
        description="Whether its files win over those of the same name in the sources before it; "
        "without it, a name that two sources have is an error.",
    )


class LocalFile(Table):
    """A file on the node's own disk that replaces one of the same name."""

    host: AbsolutePath = Field(
        description="Path of the file on the node. It is hard-linked under its base name "
        "at the root of the mount, where it wins over a source's file of that name.",
    )
    copied: bool = Field(
        default=False,
        alias="copy",
        description="Whether it is copied instead of hard-linked, once a boot, where there is "
        "room; for nodes whose /tmp and local files are on different disks.",
    )


class ComposedModel(Table):
    """The directory of links that is mounted as the model."""

    mount: MountPoint = Field(description="Where the container sees the model.")
    sources: Annotated[tuple[Source, ...], FrozenList] = Field(
        description="Repositories whose whole snapshots are linked, in this order; at least one.",
    )
    local_files: Annotated[tuple[LocalFile, ...], FrozenList] = Field(
        default=(),
        description="Files on the node's own disk, hard-linked over the links of the sources.",
    )
    engram_first_rows: dict[str, Annotated[tuple[int, ...], FrozenList]] = Field(
        default_factory=dict,
        description="Layer of an Engram table -> first row of each rank, for an engine that "
        "doesn't split the tables evenly. Local files must hold these rows.",
    )


class ReferencePoint(Table):
    """What somebody measured, to compare with. For people and for status; no digest covers it."""

    name: Line = Field(description="What was measured, and how, in a few words.")
    prefill_tokens_per_second: Measured | None = Field(
        default=None,
        description="Prompt tokens per second of one request.",
    )
    decode_tokens_per_second: Measured | None = Field(
        default=None,
        description="Generated tokens per second of one request.",
    )
    first_token_ms: Measured | None = Field(
        default=None,
        description="Milliseconds to the first token.",
    )
    quality: Line | None = Field(
        default=None,
        description="The result of a test of answers, such as 154/176.",
    )
