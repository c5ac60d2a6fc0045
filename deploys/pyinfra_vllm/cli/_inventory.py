"""The hosts of an inventory and their data, read by pyinfra itself; no host is reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyinfra_vllm.errors import UserError

if TYPE_CHECKING:
    from pyinfra.api.inventory import Inventory


def hosts(inventory: str) -> dict[str, dict[str, Any]]:
    """Host name -> its data, with group data. UserError when it can't be read."""
    check_file(inventory)
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
    # Inventories import from the working directory, as under pyinfra itself.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
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
