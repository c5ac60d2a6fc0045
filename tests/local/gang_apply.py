"""Operations of a whole gang on this machine: each node has its paths below a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyinfra.api import Config, Inventory, State, StringCommand
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.connectors.local import LocalConnector
from pyinfra.connectors.util import CommandOutput, OutputLine
from pyinfra.context import ctx_config, ctx_state

from pyinfra_vllm.release import Release


class LocalGang:
    """``root``: the folder that stands for the root of every node in what is sent to it."""

    def __init__(self, release: Release, root: Path) -> None:
        self.release = release
        self.root = root
        self.names = [node.name for node in release.content.gang.nodes]

    def here(self, node: str, path: str) -> Path:
        """Where a node has what is sent to it as ``path``."""
        return Path(path.replace(str(self.root), str(self.root / node)))

    def apply(self, operation: Any, diff: bool = False) -> dict[str, bool | None]:
        """Run an operation on all nodes: node -> whether it changed, None where it failed."""
        inventory = Inventory((self.names, {}))
        for host in inventory:
            host.connector_cls = _connector(self.root)
        state = State(inventory, Config(DIFF=diff))
        with ctx_state.use(state), ctx_config.use(state.config):
            connect_all(state)
            metas: Mapping[Any, Any] = add_op(state, operation, release=self.release)
            try:
                run_ops(state)
            except PyinfraError:
                assert state.failed_hosts
        failed = {host.name for host in state.failed_hosts}
        return {
            host.name: None if host.name in failed else meta.did_change()
            for host, meta in metas.items()
        }


def _connector(root: Path) -> type[LocalConnector]:
    class Below(LocalConnector):
        """A node whose root is a folder."""

        def run_shell_command(
            self, command: StringCommand | str, *words: Any, **arguments: Any
        ) -> tuple[bool, CommandOutput]:
            said = arguments.get("_stdin")
            if said:
                lines = [said] if isinstance(said, str) else said
                arguments["_stdin"] = [self._moved(line) for line in lines]
            text = command if isinstance(command, str) else command.get_raw_value()
            moved = StringCommand(self._moved(text))
            ok, output = super().run_shell_command(moved, *words, **arguments)
            lines = [(one.buffer_name, self._back(one.line)) for one in output.combined_lines]
            return ok, CommandOutput([OutputLine(*line) for line in lines])

        def _back(self, text: str) -> str:
            return text.replace(str(root / self.host.name), str(root))

        def _moved(self, text: str) -> str:
            return text.replace(str(root), str(root / self.host.name))

    return Below
