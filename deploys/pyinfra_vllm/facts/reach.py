"""How commands reach a node while pyinfra is busy with another one."""

from __future__ import annotations

from typing import Any

from pyinfra.api import Host, State
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments


def connector_arguments(state: State, host: Host, asking: Host) -> dict[str, Any]:
    """``_sudo`` and the like for a command on ``host``, wanted by the deploy on ``asking``.

    pyinfra knows the arguments of a deploy (``serve(_sudo=True)``) only on the host that it
    is preparing; the other members of the gang are reached in the same way, unless the
    inventory says something of its own for one of them.
    """
    own, _ = pop_global_arguments(state, host, {})
    arguments = {key: value for key, value in own.items() if key in CONNECTOR_ARGUMENT_KEYS}
    said = {**host.data.dict(), **asking.data.dict()}
    resolved: dict[str, Any] = dict(
        asking.current_op_global_arguments or asking.current_deploy_kwargs or {}
    )
    borrowed = {
        key: value
        for key, value in resolved.items()
        if key in arguments and key not in said and value is not None
    }
    return {**arguments, **borrowed}
