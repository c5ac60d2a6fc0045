"""What the launcher sets itself on every rank, and so no recipe may set.

Each of these differs from node to node; a recipe is equal on all of them.
"""

from __future__ import annotations

import re

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

_HTTP_ONLY = "the launcher asks the head for completions over plain HTTP on --host and --port"

REFUSED_FLAGS = {
    "--model": "the checkpoint is the key model (with [composed_model] the engine gets its mount)",
    "--": "the launcher's own flags follow the recipe's, and behind -- they are no flags",
    "--config": "what that file sets is not in the recipe; write its flags into args",
    "--uds": _HTTP_ONLY,
    "--grpc": _HTTP_ONLY,
    "--ssl-keyfile": f"{_HTTP_ONLY}; put a proxy with TLS in front of it",
    "--ssl-certfile": f"{_HTTP_ONLY}; put a proxy with TLS in front of it",
}
"""Flags that no recipe can have, and why."""

SECRET_FLAGS = {"--api-key": "VLLM_API_KEY", "--hf-token": "HF_TOKEN"}
"""Flags whose value is a secret, and the variable that has it instead."""

REFUSED_ENVIRONMENT = {
    "VLLM_PORT": "it breaks the mp backend (vllm-project/vllm#16250); "
    "the port of the API is --port in args",
    "HOST_IP": "it is the old name of VLLM_HOST_IP, "
    "which is vllm_fabric_address of each node in the inventory",
    "MASTER_ADDR": FLAGS["--master-addr"],
    "MASTER_PORT": FLAGS["--master-port"],
    "RANK": "a node's rank is vllm_rank in the inventory",
    "LOCAL_RANK": "the engine numbers the GPUs of a node itself; leave it out",
    "WORLD_SIZE": "it follows from tensor_parallel_size and pipeline_parallel_size",
}
"""Variables that no recipe can have, and where their values belong."""

_SECRET_NAME = re.compile(
    r"(.*_)?(API_?KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?|ACCESS_KEY|SECRET_KEY)"
)
_NO_SECRETS = {"HF_HUB_DISABLE_IMPLICIT_TOKEN"}
_LOOKS_SECRET = re.compile(
    r"\b(hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|gh[pousr]_\w{20,}|glpat-[\w-]{20,}|AKIA[0-9A-Z]{16})\b"
)
_DOCKER_READS = re.compile(
    r"(DOCKER|BUILDKIT|LD|GODEBUG|GOTRACEBACK|SSL|XDG|LC)(_.*)?"
    r"|PATH|HOME|PWD|USER|LANG|TERM|TMPDIR|.*_PROXY",
    re.IGNORECASE,
)
_BELONGS = (
    "{what} is a secret, and everybody can read recipes, plans and command lines; write "
    'secrets = ["{name}"] above the first [table], and give its value in the file that '
    "vllm_secrets in the inventory names, or in the controller's environment"
)


def refuse_word(word: str) -> str:
    """``word`` of args, or ValueError if it is a flag that doesn't belong there."""
    if not flags.is_flag(word):
        return word
    name = flags.canonical(word)
    if name in FLAGS:
        raise ValueError(f"{_spelled(word, name)} is set by the launcher: {FLAGS[name]}")
    if name in REFUSED_FLAGS:
        raise ValueError(f"{_spelled(word, name)} doesn't belong here: {REFUSED_FLAGS[name]}")
    if name in SECRET_FLAGS:
        what = f"the value of {_spelled(word, name)}"
        raise ValueError(_BELONGS.format(what=what, name=SECRET_FLAGS[name]))
    return word


def refuse_variable(name: str) -> str:
    """``name`` of a variable, or ValueError if a recipe may not set it."""
    if name in ENVIRONMENT:
        raise ValueError(f"it is set by the launcher: {ENVIRONMENT[name]}")
    if name in REFUSED_ENVIRONMENT:
        raise ValueError(f"not allowed: {REFUSED_ENVIRONMENT[name]}")
    if _SECRET_NAME.fullmatch(name) and name not in _NO_SECRETS:
        raise ValueError(_BELONGS.format(what="the value", name=name))
    return name


def refuse_secret(name: str) -> str:
    """``name`` of a secret variable, or ValueError if it can't be one. Values never come here."""
    if name in ENVIRONMENT or name in REFUSED_ENVIRONMENT:
        return refuse_variable(name)
    if _DOCKER_READS.fullmatch(name):
        raise ValueError(f"{name} is read by docker's own client, which hands secrets over")
    return name


def refuse_value(text: str) -> str:
    """``text``, or ValueError (which doesn't show it) if it looks like someone's key."""
    if _LOOKS_SECRET.search(text):
        what = "this looks like a key or token, which"
        raise ValueError(_BELONGS.format(what=what, name="VLLM_API_KEY"))
    return text


def _spelled(word: str, name: str) -> str:
    written = word.partition("=")[0]
    return name if written == name else f"{written} (that is {name})"
