"""What pydantic found wrong in a file, in words for the person who wrote the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from pyinfra_vllm.suggest import did_you_mean

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "float_type": "a number",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
_SCALARS = (bool, int, float)
_LONGEST = 60
_KEY_MARK = "[key]"

Place = tuple[int | str, ...]


class ContradictionError(ValueError):
    """Values that are right alone and wrong together: (key path, what is wrong) of each."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {text}" for path, text in problems))
        self.problems = tuple(problems)


def shown(path: Path) -> str:
    """``path`` as its reader can find it: relative to the working directory when below it."""
    absolute = path.absolute()
    try:
        return str(absolute.relative_to(Path.cwd()))
    except ValueError:
        return str(absolute)


def describe(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """All findings of ``error``, one a line: ``where: key.path[0].key: what is wrong``."""
    found = error.errors(include_url=False)
    wrong_keys = {tuple(one["loc"][:-1]) for one in found if one["loc"][-1:] == (_KEY_MARK,)}
    lines: list[str] = []
    for one in found:
        place = tuple(one["loc"])
        if place in wrong_keys:
            continue
        for path, text in _findings(dict(one), place, model):
            lines.append(f"{where}: {path}: {text}" if path else f"{where}: {text}")
    return "\n".join(lines)


def key_path(place: Place) -> str:
    """``("composed_model", "sources", 0, "repo")`` as ``composed_model.sources[0].repo``."""
    text = ""
    for part in place:
        if part == _KEY_MARK:
            continue
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


def got(value: object) -> str:
    """``value`` in a sentence that ends with "got"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = str(value)
        return f"the number {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    names = {list: "a list", tuple: "a list", dict: "a table", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


def _findings(
    one: dict[str, Any], place: Place, model: type[BaseModel]
) -> Iterator[tuple[str, str]]:
    kind, path = one["type"], key_path(place)
    cause = one.get("ctx", {}).get("error")
    if isinstance(cause, ContradictionError):
        yield from cause.problems
    elif cause is not None:
        yield path, str(cause)
    elif kind == "extra_forbidden":
        yield path, _unknown(place, model)
    elif kind == "missing":
        field = _model_at(model, place[:-1]).model_fields[str(place[-1])]
        yield path, f"missing: {field.description}"
    elif kind in _EXPECTED:
        hint = _hint(kind, one["input"], path)
        yield path, f"expected {_EXPECTED[kind]}, got {got(one['input'])}{hint}"
    else:
        yield path, f"{one['msg']}, got {got(one['input'])}"


def _hint(kind: str, value: object, path: str) -> str:
    if kind == "string_type" and isinstance(value, _SCALARS):
        return "; write it in quotes"
    if kind == "tuple_type" and isinstance(value, dict):
        return f"; write [[{path}]], with two brackets"
    if kind == "tuple_type" and isinstance(value, str):
        return f"; write [{got(value)}]"
    if kind == "model_type" and path.endswith("]"):
        return f"; write one [[{path.rpartition('[')[0]}]] table for each"
    if kind == "model_type" and isinstance(value, list):
        return f"; write [{path}], with one bracket"
    return ""


def _unknown(place: Place, model: type[BaseModel]) -> str:
    key, known = str(place[-1]), _model_at(model, place[:-1]).model_fields
    if len(place) > 1 and key in model.model_fields and key not in known:
        table = key_path(place[:-1])
        return f"unknown key in {table}; {key} belongs above the first [table] of the file"
    return f"unknown key; {did_you_mean(key, known)}"


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel]:
    for part in place:
        if isinstance(part, str):
            model = next(models_in(model.model_fields[part].annotation))
    return model


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)
