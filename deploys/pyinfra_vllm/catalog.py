"""Which recipe a person means: ``r37`` is ``recipes/dsv41-flash-jovian-r37-4x``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyinfra_vllm import resources, suggest, toml
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.recipe import Recipe, load
from pyinfra_vllm.validation import got, shown

FILE = "recipe.toml"
_MOST_LISTED = 20


@dataclass(frozen=True)
class Found:
    """A recipe, where it stands, and the name of its folder."""

    name: str
    path: Path
    recipe: Recipe


def find(value: object, nodes: int | None = None) -> Found:
    """The recipe that ``value`` means: a name, parts of one, a path to a file or its folder.

    Parts are what stands between dashes; if several recipes have them, the one whose
    ``required_nodes`` is ``nodes`` is meant. Only the recipes in question are read.
    UserError names the nearest recipes, or all candidates.
    """
    path = path_of(value, nodes)
    return Found(_name_of(path), path, load(path))


def path_of(value: object, nodes: int | None = None) -> Path:
    """The file of the recipe that :func:`find` would load. UserError as there."""
    if not isinstance(value, str) or not value.strip():
        raise UserError(_not_text(value))
    return _path_of(value) if _is_path(value) else _path_by_name(value, nodes)


def names() -> dict[str, Path]:
    """Every recipe's name and file, in the order of names; the first root wins."""
    found: dict[str, Path] = {}
    for root in resources.roots("recipes"):
        for path in root.glob(f"*/{FILE}"):
            found.setdefault(path.parent.name, path)
    return dict(sorted(found.items()))


def _is_path(value: str) -> bool:
    return "/" in value or value.endswith(".toml") or value in (".", "..", "~")


def _path_of(value: str) -> Path:
    path = Path(value).expanduser()
    if path.is_dir():
        path /= FILE
    if not path.is_file():
        raise UserError(f"recipe {value!r}: there is no file {shown(path)}")
    return path


def _name_of(path: Path) -> str:
    return path.absolute().parent.name if path.name == FILE else path.stem


def _path_by_name(value: str, nodes: int | None) -> Path:
    known = names()
    if value in known:
        return known[value]
    candidates = [name for name in known if _has_parts(name, value)]
    if not candidates and (Path(value) / FILE).is_file():
        return Path(value) / FILE
    if not candidates:
        raise UserError(f"recipe {value!r}: {_unknown(value, list(known))}")
    return known[candidates[0] if len(candidates) == 1 else _fitting(value, candidates, nodes)]


def _has_parts(name: str, value: str) -> bool:
    return f"-{value}-" in f"-{name}-"


def _fitting(value: str, candidates: Sequence[str], nodes: int | None) -> str:
    known = names()
    needs = {name: toml.read(known[name]).get("required_nodes") for name in candidates}
    fitting = [name for name in candidates if nodes is not None and needs[name] == nodes]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(f"{name} (required_nodes {needs[name]})" for name in candidates)
    inventory = "" if nodes is None else f" and {len(fitting) or 'none'} of them for {nodes} nodes"
    raise UserError(
        f"recipe {value!r}: {len(candidates)} recipes have this in their name{inventory}: "
        f"{listed}; write one of these names"
    )


def _unknown(value: str, known: Sequence[str]) -> str:
    if not known:
        return f"there are no recipes; a recipe is a file recipes/NAME/{FILE}"
    near = _near(value, known)
    if near:
        meant = " or ".join(near)
        return f"no recipe has this name or this part in its name; did you mean {meant}?"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    listed = ", ".join(known[:_MOST_LISTED])
    return f"no recipe has this name or this part in its name; there are: {listed}{more}"


def _near(value: str, known: Sequence[str]) -> list[str]:
    parts: dict[str, list[str]] = {}
    for name in known:
        for part in {name, *name.split("-")}:
            parts.setdefault(part, []).append(name)
    near = suggest.nearest(value, parts, most=3)
    return sorted({name for part in near for name in parts[part]})


def _not_text(value: object) -> str:
    known = list(names())
    example = known[0] if known else "NAME"
    if value is None or isinstance(value, str):
        return f"no recipe is given; add for example --data recipe={example}"
    same = [name for name in known if not isinstance(value, bool) and str(value) in name]
    examples = " or ".join(f"--data recipe={name}" for name in same[:3] or [example])
    return (
        f"recipe: expected text, got {got(value)}: pyinfra turns --data values that look like "
        f"numbers, true, false or JSON into these; write the recipe's full name or a path, "
        f"such as {examples}"
    )
