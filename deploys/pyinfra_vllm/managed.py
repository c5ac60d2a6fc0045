"""What the launcher sets itself on every rank, and so no recipe may set.

Each of these differs from node to node; a recipe is equal on all of them.
"""

from __future__ import annotations

from pyinfra_vllm import flags

FLAGS = {
    "--nnodes": "the number of nodes is the key required_nodes",
    "--node-rank": "a node's rank is vllm_rank in the inventory",
    "--master-addr": "it is the vllm_fabric_address of rank 0 in the inventory",
    "--master-port": "the launcher chooses the port; leave it out",
    "--headless": "the launcher gives it to every rank but 0; leave it out",
}
"""Flags that the launcher owns, and where their values belong."""

ENVIRONMENT = {
    "VLLM_HOST_IP": "it is vllm_fabric_address of each node in the inventory",
    "NCCL_SOCKET_IFNAME": "it is vllm_interfaces of each node in the inventory",
    "GLOO_SOCKET_IFNAME": "it is vllm_interfaces of each node in the inventory",
    "NCCL_IB_HCA": "it is vllm_hcas of each node in the inventory",
    "NCCL_IB_GID_INDEX": "every node looks it up at each start, for it moves; leave it out",
}
"""Variables that the launcher owns, and where their values belong."""

_REFUSED_FLAGS = {
    "--model": "the checkpoint is the key model (with [composed_model] the engine gets its mount)",
    "--": "the launcher's own flags follow the recipe's, and behind -- they are no flags",
}

_REFUSED_ENVIRONMENT = {
    "VLLM_PORT": "it breaks the mp backend (vllm-project/vllm#16250); "
    "the port of the API is --port in args",
}


def refuse_word(word: str) -> str:
    """``word`` of args, or ValueError if it is a flag that doesn't belong there."""
    if not flags.is_flag(word):
        return word
    name = flags.canonical(word)
    if name in FLAGS:
        raise ValueError(f"{_spelled(word, name)} is set by the launcher: {FLAGS[name]}")
    if name in _REFUSED_FLAGS:
        raise ValueError(f"{_spelled(word, name)} doesn't belong here: {_REFUSED_FLAGS[name]}")
    return word


def refuse_variable(name: str) -> str:
    """``name`` of a variable, or ValueError if a recipe may not set it."""
    if name in ENVIRONMENT:
        raise ValueError(f"it is set by the launcher: {ENVIRONMENT[name]}")
    if name in _REFUSED_ENVIRONMENT:
        raise ValueError(f"not allowed: {_REFUSED_ENVIRONMENT[name]}")
    return name


def _spelled(word: str, name: str) -> str:
    written = word.partition("=")[0]
    return name if written == name else f"{written} (that is {name})"
