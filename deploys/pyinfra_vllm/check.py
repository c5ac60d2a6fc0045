"""Everything that can be known to be wrong with recipes without a node. Pure but for files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pyinfra_vllm import catalog, flag_cache, flag_list, image, image_files
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.flag_list import FlagList
from pyinfra_vllm.recipe import Recipe, load
from pyinfra_vllm.validation import shown


@dataclass
class Report:
    """``findings``: one line each. ``unchecked``: images whose flags aren't known here."""

    recipes: int = 0
    findings: list[str] = field(default_factory=list)
    unchecked: set[str] = field(default_factory=set)


def check(recipes: Sequence[str] = ()) -> Report:
    """Findings about these recipes (names, parts of names, paths); none given: about all."""
    report = Report()
    paths = list(catalog.names().values()) if not recipes else []
    for value in recipes:
        try:
            paths.append(catalog.path_of(value))
        except UserError as error:
            report.findings += str(error).splitlines()
    for path in dict.fromkeys(paths):
        report.recipes += 1
        report.findings += _findings(path, report.unchecked)
    return report


def flag_findings(recipe: Recipe, known: FlagList) -> Iterator[str]:
    """What the image's own ``vllm serve`` would refuse, as ``args[3]: --flag: …``."""
    for index, text in flag_list.findings(known, recipe.args):
        yield f"args[{index}]: {text}"


def known_findings(path: Path, recipe: Recipe, build: str | None) -> list[str] | None:
    """As :func:`flag_findings`, each with its file; None where the build's flags aren't known."""
    known = flag_cache.known(build) if build else None
    if known is None or recipe.entrypoint != flag_list.ENTRYPOINT:
        return None
    return [f"{shown(path)}: {text}" for text in flag_findings(recipe, known)]


def _findings(path: Path, unchecked: set[str]) -> Iterator[str]:
    try:
        recipe = load(path)
    except UserError as error:
        yield from str(error).splitlines()
        return
    try:
        build = _build_digest(recipe.docker_image_dir, recipe.build_profile)
    except UserError as error:
        key = _key_of_image(recipe)
        yield from (f"{shown(path)}: {key}: {line}" for line in str(error).splitlines())
        return
    found = known_findings(path, recipe, build)
    if found is None:
        unchecked.add(recipe.docker_image)
    yield from found or ()


def _key_of_image(recipe: Recipe) -> str:
    """The key of a recipe that is wrong when its image can't be described."""
    try:
        files = image_files.find(recipe.docker_image_dir or "")
    except UserError:
        return "docker_image_dir"
    known = files.profiles if files.template is not None else (None,)
    return "docker_image_dir" if recipe.build_profile in known else "build_profile"


@cache
def _build_digest(image_dir: str | None, profile: str | None) -> str | None:
    return image.build_of(image_dir, profile, "image").digest if image_dir else None
