"""What changes from one recipe to another, as text for a person. Pure but for reading profiles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyinfra_vllm import flags, image_files, image_profile
from pyinfra_vllm.catalog import Found
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.recipe import Recipe

Values = dict[str, str]
"""What can differ: a name that a person understands -> its value as text."""

_FOR_PEOPLE = ("name", "parent_model", "reference_points")
_IMAGE = "image"
_IMAGE_FOR_PEOPLE = ("deviations", "known_defects", "resources")
_NOTHING = "(nothing)"


def text(old: Found, new: Found) -> str:
    """Both recipes compared: first what the engine notices, then what only people do."""
    engine = list(_changes(_for_engine(old.recipe), _for_engine(new.recipe)))
    if not engine and old.recipe.args != new.recipe.args:
        engine = ["args: the same flags in another order or spelling"]
    image_old, image_new = _profile(old.recipe), _profile(new.recipe)
    sources = list(_changes(image_old[0], image_new[0]))
    people = list(_changes(_for_people(old.recipe), _for_people(new.recipe)))
    people += _changes(image_old[1], image_new[1])
    sections = {
        "For the engine:": engine,
        "In the image, which is built anew:": sources,
        "Only for people:": people,
    }
    lines = [f"{old.name} -> {new.name}"]
    for title, changes in sections.items():
        if changes:
            lines += ["", title, *(f"  {line}" for line in changes)]
    if len(lines) == 1:
        lines.append("no differences")
    return "\n".join(lines) + "\n"


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key in [*old, *(key for key in new if key not in old)]:
        if old.get(key) == new.get(key):
            continue
        if key not in old:
            yield f"+ {key} {new[key]}".rstrip()
        elif key not in new:
            yield f"- {key} {old[key]}".rstrip()
        else:
            yield f"{key}: {old[key] or _NOTHING} -> {new[key] or _NOTHING}"


def _for_engine(recipe: Recipe) -> Values:
    document = recipe.model_dump(exclude={"args", *_FOR_PEOPLE})
    return {**_flat(document), **_args(recipe)}


def _for_people(recipe: Recipe) -> Values:
    found = _flat(recipe.model_dump(include={"name", "parent_model"}))
    for point in recipe.reference_points:
        values = point.model_dump(exclude={"name"}, exclude_none=True)
        measured = (f"{key} {_plain(value)}" for key, value in values.items())
        found[f'reference point "{point.name}":'] = ", ".join(measured)
    return found


def _args(recipe: Recipe) -> Values:
    """Each flag with its values; the keys of a JSON value one by one."""
    values: Values = {}
    for one in flags.said(recipe.args):
        whole = _json(one.value) if len(one.values) == 1 else None
        found = _flat(whole, one.flag) if whole else {one.flag: " ".join(one.values)}
        for key, value in found.items():
            values[key] = f"{values[key]}, {value}" if key in values else value
    return values


def _json(value: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(value or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _profile(recipe: Recipe) -> tuple[Values, Values]:
    """What an image is built from: what shapes it, and what people are told of it."""
    if recipe.docker_image_dir is None or recipe.build_profile is None:
        return {}, {}
    try:
        path = image_files.find(recipe.docker_image_dir).profile(recipe.build_profile)
        document = image_profile.load(path).model_dump()
    except UserError as error:
        return {_IMAGE: f"unknown: {error}"}, {}
    people = {key: document.pop(key) for key in _IMAGE_FOR_PEOPLE if key in document}
    return _flat(document, _IMAGE), _flat(people, _IMAGE)


def _flat(value: Any, path: str = "") -> Values:
    """A nested value as paths; tables of a list go by their name, repository or host."""
    if isinstance(value, dict):
        pairs = [(f"{path}.{key}" if path else str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value):
        pairs = [(f"{path}[{_name(one, i)}]", one) for i, one in enumerate(value)]
    elif isinstance(value, list | tuple):
        return {path: "; ".join(map(str, value))} if value else {}
    else:
        return {} if value is None else {path: _plain(value)}
    return {key: text for name, inner in pairs for key, text in _flat(inner, name).items()}


def _name(one: Any, index: int) -> str:
    names = (one.get(key) for key in ("name", "repo", "host", "package"))
    return next((str(name) for name in names if name), str(index))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
