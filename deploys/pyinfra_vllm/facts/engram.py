"""What the local copies of Engram shards on a node lack: one remote command."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase
from typing_extensions import override

from pyinfra_vllm.agent_archive import archive

NAME = "pyinfra-vllm.engram.v1"
_SCRIPT = """\
import base64, json, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".pyz") as file:
    file.write(base64.b64decode(ARCHIVE))
    file.flush()
    sys.path.insert(0, file.name)
    from pyinfra_vllm.agent import engram_job
    print(json.dumps(engram_job.look(json.loads(PLAN))))
"""


class EngramCopies(FactBase[dict[str, Any]]):
    """For each local file of a plan ``{"lacking": […], "good": …}`` or ``{"problem": …}``.

    The agent looks with the code of this version, whether it is installed or not.
    """

    @staticmethod
    def arguments(plan: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of ``get_fact``; the plan is that of :mod:`pyinfra_vllm.engram`."""
        code = base64.b64encode(archive()).decode()
        return {"_stdin": _Input([f"ARCHIVE = {code!r}\nPLAN = {json.dumps(plan)!a}\n{_SCRIPT}"])}

    @override
    def command(self) -> str:
        return f"python3 -IS - {NAME} 2>&1"

    @override
    def process(self, output: list[str]) -> dict[str, Any]:
        try:
            found = json.loads(output[-1])
        except (ValueError, IndexError):
            said = " | ".join(output[-6:])
            raise FactProcessError(f"the copies can't be looked at: {said}") from None
        assert isinstance(found, dict)
        return found


class _Input(list[str]):
    """The script for standard input; pyinfra prints the arguments of facts at ``-v``."""

    @override
    def __repr__(self) -> str:
        return f"<{NAME}>"
