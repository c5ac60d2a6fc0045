"""Operation: the values of secret variables on a node."""

from __future__ import annotations

from pyinfra import logger
from pyinfra.api import operation

from pyinfra_vllm import placement, secret_values
from pyinfra_vllm.agent.secret_values import file
from pyinfra_vllm.operations.common import Commands, change, look, place, show
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release


@operation()
@changing
def placed(release: Release) -> Commands:
    """Values that only root can read; names are shown, values never.

    Values of other names stay: a rollback may need them.

    + release: what the gang is to serve
    """
    secrets = release.content.secrets
    found = look(release).secrets.required
    for name in secrets.unknown:
        logger.warning(f"secret {name}: no value on this machine, so the node's is kept unseen")
    differing = secret_values.differing(secrets, found)
    if not differing and (not found.exists or secret_values.is_private(found)):
        return
    path = file(release.content.gang.name)
    for name in differing:
        show(f"Will {'replace' if name in found.digests else 'add'} secret {name} in {path}")
    if not differing:
        show(f"Will set mode 600 and owner root on {path}")
    values = {name: secrets.values[name] for name in differing}
    yield from change(place([placement.secrets(path, values)]))
