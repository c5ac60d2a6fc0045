"""Render a Dockerfile from a profile; refuse what one of the two says in vain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image_profile import TODO, Profile
from pyinfra_vllm.rendering import render
from pyinfra_vllm.suggest import did_you_mean

_Value = TypeVar("_Value")

_USED_ELSEWHERE = {"images", "sources", "deviations", "known_defects"}
"""Keys that the template gets by name, or that are for people."""


class _Watched:
    """The profile as the template sees it; remembers which keys it was asked for."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._asked: set[str] = set()

    def __getattr__(self, key: str) -> object:
        self._asked.add(key)
        return getattr(self._profile, key)

    def checks(self) -> tuple[str, ...]:
        self._asked |= {"target", "versions", "libraries", "imports"}
        return self._profile.checks()

    def unused(self) -> set[str]:
        return self._profile.model_fields_set - self._asked - _USED_ELSEWHERE


def dockerfile(template: str, profile: Profile, origin: str) -> str:
    """The text of the Dockerfile that ``template`` makes of ``profile``.

    The template gets ``profile``; ``image(NAME)``, what FROM is given;
    ``source(NAME)``, an entry of [[sources]]; and ``profile.checks()``.
    UserError for what the template asks for and the profile lacks, and for
    what the profile says and the template never uses.
    """
    watched = _Watched(profile)
    images = {image.name: image.pinned for image in profile.images}
    sources = {source.name: source for source in profile.sources}
    asked: set[str] = set()
    text = render(
        template,
        profile=watched,
        image=_by_name(images, f"{origin}: images", asked),
        source=_by_name(sources, f"{origin}: sources", asked),
    )
    unused = watched.unused()
    if "JOB_GIB" in text or profile.resources is None or profile.resources.job_gib is None:
        unused -= {"resources"}
    unused |= {name for name in (*images, *sources) if name not in asked}
    if unused:
        raise UserError(
            f"{origin}: {', '.join(sorted(unused))}: templates/{template} uses none of it, "
            "so it would shape nothing; take it out of the profile"
        )
    return text


def refuse_absent(profile: Profile, files: Mapping[str, bytes], origin: str) -> None:
    """UserError for a file that the profile names and the build context ``files`` lacks."""
    named = [("requirements", profile.requirements)]
    named += [(f"patches[{index}].file", one.file) for index, one in enumerate(profile.patches)]
    for key, file in named:
        if file is not None and file != TODO and file not in files:
            raise UserError(
                f"{origin}: {key}: context/{file} doesn't exist beside the image's "
                f"Dockerfile.j2; {did_you_mean(file, files)}"
            )


def _by_name(values: Mapping[str, _Value], where: str, asked: set[str]) -> Callable[[str], _Value]:
    def value(name: str) -> _Value:
        asked.add(name)
        if name not in values:
            raise UserError(f'{where}: the Dockerfile needs one with name = "{name}", add it')
        return values[name]

    return value
