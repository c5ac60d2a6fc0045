"""The hosts of an inventory and their data, as pyinfra reads them; no host is reached."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyinfra_vllm.errors import UserError

if TYPE_CHECKING:
    from pyinfra.api.inventory import Inventory


Hosts = dict[str, dict[str, Any]]
"""Host name -> its data."""


def hosts(inventory: str) -> Hosts:
    """Every host with its data and that of its groups. UserError when it can't be read."""
    check_file(inventory)
    _add_working_directory()
    found = plain(Path(inventory))
    return found if found is not None else by_pyinfra(inventory)


def plain(path: Path) -> Hosts | None:
    """What a file says that uses nothing of pyinfra; None for any other one.

    pyinfra takes most of a second to import, and much of the time of an offline command.
    """
    folders = {path.resolve().parent / "group_data", Path.cwd() / "group_data"}
    if not path.is_file() or any(folder.exists() for folder in folders):
        return None
    try:
        if _imports_pyinfra(path.read_text(encoding="utf-8")):
            return None
        values = runpy.run_path(str(path))
    except Exception:  # pyinfra says what is wrong
        return None
    groups = {
        name: value
        for name, value in values.items()
        if not name.startswith("_") and isinstance(value, list | tuple)
    }
    if not all(map(_is_plain_group, groups.values())):
        return None
    every = groups.pop("all", None)
    found: Hosts = {}
    for group in groups.values():
        _add(found, group)
    names = [name for name, _ in _pairs(every)] if every is not None else list(found)
    _add(found, every or ())
    return {name: found.get(name, {}) for name in names}


def _imports_pyinfra(text: str) -> bool:
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.partition(".")[0] in ("pyinfra", "pyinfra_cli") for name in names):
            return True
    return False


def _is_plain_group(group: object) -> bool:
    """A list of names and of names with data, none of them of another connector than ssh."""
    return isinstance(group, list) and all(
        isinstance(name, str) and name[:1] not in ("@", "") and isinstance(data, dict)
        for name, data in _pairs(group)
    )


def _pairs(group: Iterable[Any]) -> list[tuple[Any, Any]]:
    pairs = [host if isinstance(host, tuple) else (host, {}) for host in group]
    return [pair if len(pair) == 2 else (None, None) for pair in pairs]


def _add(found: Hosts, group: Iterable[Any]) -> None:
    for name, data in _pairs(group):
        found.setdefault(name, {}).update(data)


def by_pyinfra(inventory: str) -> Hosts:
    """The same of anything that pyinfra takes as an inventory. UserError as there."""
    # Importing pyinfra's command line patches the standard library: only when it is needed.
    from pyinfra.api import State
    from pyinfra.context import ctx_state

    with ctx_state.use(State()):
        found = made(inventory)
    return {host.name: dict(host.data.dict()) for host in found.hosts.values()}


def check_file(inventory: str) -> None:
    """UserError when ``inventory`` is neither a file nor a list of hosts."""
    if not Path(inventory).is_file() and "@" not in inventory and "," not in inventory:
        raise UserError(f"inventory {inventory}: there is no such file")


def made(inventory: str, data: dict[str, Any] | None = None) -> Inventory:
    """The inventory, ``data`` over that of its hosts; a pyinfra state must be in use.

    UserError when it can't be read.
    """
    _add_working_directory()
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra_cli.exceptions import CliError, UnexpectedExternalError
    from pyinfra_cli.inventory import make_inventory

    try:
        found: Inventory = make_inventory(inventory, cwd=str(Path.cwd()), override_data=data or {})
    except UnexpectedExternalError as error:
        cause = error.exception
        raise UserError(f"inventory {inventory}: {type(cause).__name__}: {cause}") from None
    except (PyinfraError, CliError, ValueError, TypeError, SyntaxError) as error:
        raise UserError(f"inventory {inventory}: {error}") from None
    return found


def _add_working_directory() -> None:
    """Inventories import from the working directory, as under pyinfra itself."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
