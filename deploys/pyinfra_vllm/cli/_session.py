"""pyinfra's own session with the hosts of an inventory, for subcommands: connected, only read."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyinfra_vllm.errors import UserError

if TYPE_CHECKING:
    from pyinfra.api import Host, State
    from pyinfra.api.inventory import Inventory

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def add_password(parser: argparse.ArgumentParser) -> None:
    """The option that :func:`password` looks at."""
    text = "ask for sudo's password, once"
    parser.add_argument("--same-sudo-password", action="store_true", help=text)


def password(args: argparse.Namespace) -> str | None:
    """Of sudo, asked for at the terminal where the command line says so."""
    return getpass("sudo password: ") if args.same_sudo_password else None


class Notes(logging.Handler):
    """Warnings and errors that pyinfra and our operations log, as plain text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_COLOUR.sub("", record.getMessage()).strip())

    def about(self, host: str) -> str:
        """What was said last of a host, empty when nothing was."""
        prefix = f"[{host}] "
        said = [line.removeprefix(prefix) for line in self.lines if line.startswith(prefix)]
        return said[-1] if said else ""


@contextmanager
def unheard() -> Iterator[None]:
    """Warnings of operations, which are about a deploy, are not shown meanwhile."""
    from pyinfra import logger

    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def session(
    inventory: str,
    limit: Sequence[str] | None = None,
    data: dict[str, Any] | None = None,
    sudo: str | None = None,
) -> Iterator[tuple[State, Notes]]:
    """Connected to the hosts that ``limit`` names (host, pattern or group; None: to all).

    ``data`` wins over the inventory's; ``sudo`` is its password. It is in the stage *prepare*,
    where nothing can be changed. Hosts that can't be reached are in ``state.failed_hosts``.
    UserError for an inventory that can't be read, or a limit that no host matches.
    """
    from pyinfra_vllm.cli import _inventory

    _inventory.check_file(inventory)
    # Importing pyinfra's command line patches the standard library: only when it is needed.
    from pyinfra import logger
    from pyinfra.api import Config, State
    from pyinfra.api.connect import connect_all, disconnect_all
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra.api.state import StateStage
    from pyinfra.context import ctx_config, ctx_inventory, ctx_state
    from pyinfra_cli.log import setup_logging

    setup_logging(logging.WARNING, None)
    # It logs tracebacks; pyinfra says of each host in a line why it can't be reached.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    notes = Notes()
    logger.addHandler(notes)
    state, config = State(check_for_changes=False), Config()
    state.cwd = str(Path.cwd())
    with ctx_state.use(state), ctx_config.use(config):
        _own_config(config, sudo)
        hosts = _inventory.made(inventory, data)
        state.init(hosts, config, initial_limit=limited(hosts, limit))
        with ctx_inventory.use(hosts):
            state.set_stage(StateStage.Connect)
            with suppress(PyinfraError):  # raised when nobody answers; each reason is logged
                connect_all(state)
            state.set_stage(StateStage.Prepare)
            try:
                yield state, notes
            finally:
                logger.removeHandler(notes)
                disconnect_all(state)


def _own_config(config: Any, sudo: str | None) -> None:
    """``config.py`` of the working directory counts, as for pyinfra itself."""
    from pyinfra_cli.util import exec_file

    if Path("config.py").is_file():
        exec_file("config.py")
    if sudo:
        config.SUDO_PASSWORD = sudo
    config.DIFF = True


def limited(inventory: Inventory, limit: Sequence[str] | None) -> list[Host] | None:
    """Hosts of the patterns, by name or group, in inventory order; UserError for none."""
    if not limit:
        return None
    patterns = [word for several in limit for word in several.split(",") if word]
    found = []
    for pattern in patterns:
        group = inventory.groups.get(pattern)
        named = list(group) if group else [h for h in inventory if fnmatch(h.name, pattern)]
        if not named:
            raise UserError(f"--limit {pattern}: no host and no group of the inventory matches")
        found += named
    return [host for host in inventory if host in found]
