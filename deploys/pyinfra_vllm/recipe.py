"""The schema of ``recipes/<name>/recipe.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError, model_validator

from pyinfra_vllm import recipe_checks, toml, words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.recipe_tables import (
    Argument,
    Backend,
    ComposedModel,
    Engine,
    Folder,
    FrozenList,
    Image,
    Line,
    LocalFile,
    Positive,
    ReferencePoint,
    Repo,
    Secret,
    Size,
    Source,
    Table,
    Value,
    Word,
)
from pyinfra_vllm.validation import ContradictionError, describe, shown

__all__ = ["ComposedModel", "LocalFile", "Recipe", "ReferencePoint", "Source", "load"]


def _variable(name: str) -> str:
    if name in Recipe.model_fields:
        raise ValueError("is a key of the recipe; it belongs above the first [table] of the file")
    return words.variable(name)


Variable = Annotated[str, AfterValidator(_variable)]


class Recipe(Table):
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
    entrypoint: Annotated[tuple[Word, ...], FrozenList] = Field(
        default=("vllm", "serve"),
        description="First words of the command line, instead of the image's own entrypoint.",
    )
    args: Annotated[tuple[Argument, ...], FrozenList] = Field(
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
    secrets: Annotated[tuple[Secret, ...], FrozenList] = Field(
        default=(),
        description="Names of variables of the engine whose values are secret, such as "
        "VLLM_API_KEY; each node's vllm_secrets file or the controller's environment has them.",
    )
    start_timeout: Positive = Field(
        default=3600,
        description="Seconds from the start of the engines to the first completion.",
    )
    reference_points: Annotated[tuple[ReferencePoint, ...], FrozenList] = Field(
        default=(),
        description="Measurements to compare with, for people; nothing depends on them.",
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
