"""The schema of ``recipes/<name>/recipe.toml``."""

from __future__ import annotations

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

from pyinfra_vllm import recipe_checks, toml, words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.validation import ContradictionError, describe, shown


def _frozen_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _variable(name: str) -> str:
    if name in Recipe.model_fields:
        raise ValueError("is a key of the recipe; it belongs above the first [table] of the file")
    return words.variable(name)


_List = BeforeValidator(_frozen_list)
Line = Annotated[str, AfterValidator(words.filled)]
Argument = Annotated[str, AfterValidator(words.argument)]
Word = Annotated[str, AfterValidator(words.first_word)]
Variable = Annotated[str, AfterValidator(_variable)]
Value = Annotated[str, AfterValidator(words.plain)]
Image = Annotated[str, AfterValidator(words.image)]
Folder = Annotated[str, AfterValidator(words.folder)]
Repo = Annotated[str, AfterValidator(words.repo)]
Revision = Annotated[str, AfterValidator(words.revision)]
AbsolutePath = Annotated[str, AfterValidator(words.absolute)]
Size = Annotated[str, AfterValidator(words.size)]
Positive = Annotated[int, AfterValidator(words.positive)]
Engine = Annotated[str, AfterValidator(words.engine)]
Backend = Annotated[str, AfterValidator(words.backend)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Source(_Table):
    """A repository whose whole snapshot is linked into the composed model."""

    repo: Repo = Field(description="Hugging Face repository, as org/name.")
    revision: Revision | None = Field(
        default=None,
        description="Commit, tag or branch of the repository; "
        "without it, what refs/main names in the cache of each node.",
    )


class LocalFile(_Table):
    """A file on the node's own disk that replaces one of the same name."""

    host: AbsolutePath = Field(
        description="Path of the file on the node. It is hard-linked under its base name "
        "at the root of the mount, where it wins over a source's file of that name.",
    )


class ComposedModel(_Table):
    """The directory of links that is mounted as the model."""

    mount: AbsolutePath = Field(description="Where the container sees the model.")
    sources: Annotated[tuple[Source, ...], _List] = Field(
        description="Repositories whose whole snapshots are linked, in this order; at least one.",
    )
    local_files: Annotated[tuple[LocalFile, ...], _List] = Field(
        default=(),
        description="Files on the node's own disk, hard-linked over the links of the sources.",
    )


class Recipe(_Table):
    """What a gang serves: engine, image, model, arguments, environment, composed model."""

    engine: Engine = Field(description='The engine; "vllm" is the only one.')
    name: Line = Field(description="The recipe's name for people; nothing depends on it.")
    docker_image: Image = Field(description="Tag of the image that the containers run.")
    docker_image_dir: Folder | None = Field(
        default=None,
        description="Folder of templates/images with the Dockerfile of the image; "
        "without it, the image must be on every node already.",
    )
    build_profile: Folder | None = Field(
        default=None,
        description="Profile in that folder: commits, versions and settings of the build.",
    )
    model: Repo = Field(description="The checkpoint, as a Hugging Face repository.")
    parent_model: Line | None = Field(
        default=None,
        description="What the checkpoint was made from, for people; nothing depends on it.",
    )
    required_nodes: Positive = Field(
        description="Nodes that serve together; each brings one GPU.",
    )
    tensor_parallel_size: Positive = Field(
        description="GPUs that share each layer; becomes --tensor-parallel-size.",
    )
    pipeline_parallel_size: Positive = Field(
        default=1,
        description="Groups of layers in a row; becomes --pipeline-parallel-size.",
    )
    distributed_backend: Backend = Field(
        default="mp",
        description='How ranks find each other: "mp"; becomes --distributed-executor-backend.',
    )
    shm_size: Size | None = Field(
        default=None,
        description="Size of the container's /dev/shm, such as 32gb; without it, docker's default.",
    )
    entrypoint: Annotated[tuple[Word, ...], _List] = Field(
        default=("vllm", "serve"),
        description="First words of the command line, instead of the image's own entrypoint.",
    )
    args: Annotated[tuple[Argument, ...], _List] = Field(
        default=(),
        description="Words that follow entrypoint and model, in this order; "
        "a word in shell quotes loses them.",
    )
    env: dict[Variable, Value] = Field(
        default_factory=dict,
        description="Environment of the engine; every value is text, and order is kept.",
    )
    composed_model: ComposedModel | None = Field(
        default=None,
        description="Links on each node that are mounted as the model; "
        "without it, the engine gets model and reads the cache.",
    )
    start_timeout: Positive = Field(
        default=3600,
        description="Seconds from the start of the engines to the first completion.",
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Recipe:
        problems = recipe_checks.problems(self)
        if problems:
            raise ContradictionError(problems)
        return self


def load(path: Path) -> Recipe:
    """The recipe in the file ``path``.

    UserError has one line a finding, such as
    ``recipes/x/recipe.toml: composed_model.sources[0].repo: expected text, got true``.
    """
    table = toml.read(path)
    try:
        return Recipe.model_validate(table)
    except ValidationError as error:
        raise UserError(describe(error, Recipe, shown(path))) from None
