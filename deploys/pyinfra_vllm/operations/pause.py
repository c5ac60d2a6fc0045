"""Operations: pause a gang, and resume it. A marker on the head is all that there is to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyinfra import host, logger
from pyinfra.api import StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.operations.common import Commands, place
from pyinfra_vllm.operations.lock import changing

_MODE = 0o644


@operation()
@changing
def paused(gang: str, who: str, when: str, why: str) -> Commands:
    """The head holds back all starts, over reboots too, until it is resumed.

    + gang: name of the gang
    + who, when, why: what people are told who look at it
    """
    document = json.dumps({"schema": 1, "who": who, "when": when, "why": why}, indent=2)
    yield place([placement.file(paths.paused(gang), document + "\n", _MODE)])
    logger.info(f"{host.print_prefix}gang {gang} is paused; deploys/resume.py ends that")


@operation(is_idempotent=False)
@changing
def resumed(gang: str, by: Mapping[str, Any]) -> Commands:
    """The head starts the gang again; a release that it gave up on is tried again.

    + gang: name of the gang
    + by: who asks for it, for the history
    """
    marker, wanted = paths.paused(gang), paths.wanted(gang)
    yield StringCommand("python3", "-", _stdin=resume_script(marker, wanted, by))
    unit = paths.unit(gang)
    yield StringCommand(f"systemctl reset-failed {unit} 2>/dev/null; systemctl start {unit}")


def resume_script(marker: str, wanted: str, by: Mapping[str, Any]) -> str:
    """The Python program that asks the head once more, and takes away the ``marker``."""
    return _RESUME.format(marker=marker, wanted=wanted, by=dict(by))


_RESUME = """\
import json, os, pathlib
marker, wanted = pathlib.Path({marker!r}), pathlib.Path({wanted!r})
if wanted.exists():
    wish = json.loads(wanted.read_text())
    wish["switch"] = wish.get("switch", 0) + 1
    wish.update(kind="resume", by={by!r})
    fresh = wanted.with_name(".wanted.json.new")
    with fresh.open("w") as stream:
        stream.write(json.dumps(wish, indent=2) + "\\n")
        stream.flush()
        os.fsync(stream.fileno())
    fresh.rename(wanted)
marker.unlink(missing_ok=True)
"""
