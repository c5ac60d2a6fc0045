"""Operation: the local copies of Engram shards of a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyinfra import host
from pyinfra.api import Host, State, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent_archive import archive
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.engram import EngramCopies
from pyinfra_vllm.operations import transient
from pyinfra_vllm.operations.common import Commands, called, change, explained, place, show

UNIT = "pyinfra-vllm-engram"


@operation()
@explained
def copied(plan: Mapping[str, Any]) -> Commands:
    """Every local shard is there and has what this rank reads, proven by header and holes.

    + plan: what :func:`pyinfra_vllm.engram.plan` says for this node
    """
    found = host.get_fact(EngramCopies, **EngramCopies.arguments(plan)) or {}
    problems = [entry["problem"] for entry in found.values() if "problem" in entry]
    if problems or not found:
        raise UserError("\n".join(problems) or "its copies can't be looked at (see above)")
    lacking = {path: entry["lacking"] for path, entry in found.items() if entry["lacking"]}
    if not lacking and not plan["verify"]:
        return
    for path, lines in lacking.items():
        for line in lines:
            show(f"Will make or top up {path}: {line}")
    check = ["python3", "{path}", "selftest"]
    agent = placement.file(paths.AGENT, archive(), 0o755, check)
    yield from change(
        place([agent, placement.file(paths.ENGRAM_PLAN, json.dumps(plan, indent=1))]),
        called(_make),
    )


def _make(state: State, host: Host) -> bool:
    return transient.work(host, UNIT, ["python3", "-I", paths.AGENT, "engram", paths.ENGRAM_PLAN])
