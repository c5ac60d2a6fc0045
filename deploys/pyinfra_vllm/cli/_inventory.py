"""The hosts of an inventory and their data, read by pyinfra itself; no host is reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyinfra_vllm.errors import UserError


def hosts(inventory: str) -> dict[str, dict[str, Any]]:
    """Host name -> its data, with group data. UserError when it can't be read."""
    if not Path(inventory).is_file() and "@" not in inventory and "," not in inventory:
        raise UserError(f"inventory {inventory}: there is no such file")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    # Importing pyinfra's command line patches the standard library: only when it is needed.
    from pyinfra.api import State
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra.context import ctx_state
    from pyinfra_cli.exceptions import CliError, UnexpectedExternalError
    from pyinfra_cli.inventory import make_inventory

    try:
        with ctx_state.use(State()):
            found = make_inventory(inventory, cwd=str(Path.cwd()))
    except UnexpectedExternalError as error:
        cause = error.exception
        raise UserError(f"inventory {inventory}: {type(cause).__name__}: {cause}") from None
    except (PyinfraError, CliError, ValueError, TypeError, SyntaxError) as error:
        raise UserError(f"inventory {inventory}: {error}") from None
    return {host.name: dict(host.data.dict()) for host in found.hosts.values()}
