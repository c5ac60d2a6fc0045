"""The four nodes of the lab on this machine: `pyinfra-vllm lab up` makes them.

PYINFRA_VLLM_LAB names the lab (default: lab).
"""

import os as _os

from pyinfra.api.exceptions import InventoryError as _InventoryError

from pyinfra_vllm.errors import UserError as _UserError
from pyinfra_vllm.lab import state as _state

try:
    _lab = _state.require(_os.environ.get("PYINFRA_VLLM_LAB", "lab"))
except _UserError as _error:
    raise _InventoryError(str(_error)) from None

lab = [
    (
        _machine.name,
        {
            "ssh_hostname": _machine.address,
            "ssh_user": "root",
            "ssh_key": str(_lab.key),
            # The lab knows its nodes' keys: nothing is asked, and ~/.ssh is left alone.
            "ssh_known_hosts_file": str(_lab.known_hosts),
            "ssh_strict_host_key_checking": "yes",
            "ssh_config_file": _os.devnull,
            "vllm_rank": _machine.rank,
            "vllm_fabric_address": _machine.address,
            "vllm_interfaces": ["host0"],
            "vllm_hcas": [],  # no RDMA between the nodes
            "vllm_gpus": False,
            "vllm_hf_cache": "/mnt/nas/hub",
        },
    )
    for _machine in _lab.machines
]
