"""The state of a node as a pyinfra fact: one remote command."""

from __future__ import annotations

import time
from typing import Any

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase
from typing_extensions import override

from pyinfra_vllm import offline
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState as State
from pyinfra_vllm.node import Query, parse, script

NAME = offline.COMMAND
_FAILED = f"{NAME} failed with exit status "
# Constant, so that a recorded answer can stand for a node. -I: the login folder's modules and
# PYTHON* variables don't reach it; -S: no site-packages. It always exits 0, as pyinfra shows the
# bare output of a command that fails, and process() can say what is wrong.
COMMAND = f'python3 -IS - {NAME} 2>&1 || echo "{_FAILED}$?"'


class NodeState(FactBase[State]):
    """State of the node: ``host.get_fact(NodeState, **NodeState.arguments(query))``.

    None when the node could not be read; the reason has been logged and the host is failed.
    """

    @staticmethod
    def arguments(query: Query) -> dict[str, Any]:
        """Keyword arguments of ``get_fact``: the script, which takes the way of standard input."""
        asked = query.model_copy(update={"asked": time.time()})
        return {"_stdin": _Input([script(asked)])}

    @override
    def command(self) -> str:
        return COMMAND

    @override
    def process(self, output: list[str]) -> State:
        try:
            found = parse("\n".join(output))
        except UserError as error:
            raise FactProcessError(_reason(output) or str(error)) from None
        if found.received is None and found.query.asked is not None:
            return found.model_copy(update={"received": time.time()})
        return found


def _reason(output: list[str]) -> str | None:
    """What to do about a script that failed; None when it ended well."""
    if not output or not output[-1].startswith(_FAILED):
        return None
    if output[-1] == f"{_FAILED}127":
        return "python3 is not installed on the node: apt-get install python3 (3.10 or newer)"
    return "the node state can't be read: " + " | ".join(output[-6:])


class _Input(list[str]):
    """The script for standard input; pyinfra prints the arguments of facts at ``-v``."""

    @override
    def __repr__(self) -> str:
        return f"<{NAME}>"
