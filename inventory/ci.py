"""Plans without a node in reach: another inventory's hosts, answered for by saved states.

    pyinfra-vllm facts inventory/gb10.py --save states          where the nodes are
    PYINFRA_VLLM_STATES=states pyinfra inventory/ci.py deploys/recipe.py --data recipe=r37 --dry

gives the plan that the real nodes would give. Without PYINFRA_VLLM_STATES, or for a node that
has no file there, the nodes are blank ones. PYINFRA_VLLM_INVENTORY names the inventory
(default: inventory/gb10.py).
"""

import os as _os

from pyinfra.api.exceptions import InventoryError as _InventoryError

from pyinfra_vllm import offline as _offline
from pyinfra_vllm.errors import UserError as _UserError

try:
    globals().update(
        _offline.groups(
            _os.environ.get("PYINFRA_VLLM_INVENTORY", "inventory/gb10.py"),
            _os.environ.get("PYINFRA_VLLM_STATES"),
        )
    )
except _UserError as _error:
    raise _InventoryError(str(_error)) from None
