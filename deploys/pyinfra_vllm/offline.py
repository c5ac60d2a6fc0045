"""An inventory whose nodes are saved states instead of machines, through pyinfra's @fake. Pure."""

from __future__ import annotations

import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyinfra_vllm.cluster import plain_name
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState, parse

COMMAND = "pyinfra-vllm.state.v1"
"""Part of the command that reads a node's state, by which @fake knows what to answer."""

Host = tuple[str, dict[str, Any]]


def groups(inventory: str, states: str | None) -> dict[str, list[Host]]:
    """The groups of an inventory file with every host answered for by ``states``/HOST.json.

    Without ``states``, and for a host that has no file there, the node is a blank one: it
    is planned as if it had everything that a first deploy needs. UserError for a file or
    folder that isn't there, and for a state that can't be understood.
    """
    path = Path(inventory)
    if not path.is_file():
        raise UserError(f"{inventory} (PYINFRA_VLLM_INVENTORY): there is no such inventory")
    if states is not None and not Path(states).is_dir():
        raise UserError(f"{states} (PYINFRA_VLLM_STATES): there is no such folder")
    found: dict[str, list[Host]] = {path.stem: []}
    for name, hosts in runpy.run_path(str(path)).items():
        if not name.startswith("_") and isinstance(hosts, list):
            found[name] = [_host(host, states) for host in _pairs(hosts)]
    found[path.stem] = found[path.stem] or [host for several in found.values() for host in several]
    return found


def _pairs(hosts: Iterable[object]) -> Iterable[Host]:
    for host in hosts:
        if isinstance(host, str):
            yield host, {}
        elif isinstance(host, tuple) and len(host) == 2 and isinstance(host[1], dict):
            yield str(host[0]), host[1]


def _host(host: Host, states: str | None) -> Host:
    name, data = plain_name(host[0]), host[1]
    state = _state(Path(states) / f"{name}.json") if states else None
    ours = {key: value for key, value in data.items() if not key.startswith(("ssh_", "_"))}
    text = (state or NodeState()).model_dump_json(by_alias=True)
    fake = {"fake_responses": {COMMAND: text}, "fake_delay": 0, "fake_delay_jitter": 0}
    return f"@fake/{name}", {**ours, **fake}


def _state(path: Path) -> NodeState | None:
    if not path.is_file():
        return None
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UserError as error:
        raise UserError(f"{path}: {error}; save it anew: pyinfra-vllm facts --save") from None
