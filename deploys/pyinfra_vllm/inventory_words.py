"""Host data of a node: each function returns the value or says what it should be."""

from __future__ import annotations

import ipaddress
import re

from pyinfra_vllm import image_origin, words
from pyinfra_vllm.check_names import NAMES
from pyinfra_vllm.suggest import did_you_mean
from pyinfra_vllm.validation import got

_GANG = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
_CHECK = re.compile(r"[a-z0-9-]{1,40}")
_HCA = re.compile(r"[A-Za-z0-9_.-]{1,63}")


def rank(value: object) -> int:
    """A place in the gang, from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number from 0, got {got(value)}")
    return value


def gang(value: object) -> str:
    """A name that can be part of a unit's, a container's and a folder's name."""
    if not isinstance(value, str) or not _GANG.fullmatch(value):
        raise ValueError(
            "expected a short name of lower-case letters, digits and inner dashes, "
            f"got {got(value)}"
        )
    return value


def address(value: object) -> str:
    """An IP address that other nodes can reach."""
    wanted = "expected an IP address of the node on the fabric"
    if not isinstance(value, str):
        raise ValueError(f"{wanted}, got {got(value)}")
    try:
        parsed = ipaddress.ip_address(value)
    except ValueError:
        raise ValueError(f"{wanted}, without name, port or prefix, got {got(value)}") from None
    if parsed.is_unspecified or parsed.is_multicast or parsed.is_loopback:
        raise ValueError(f"{wanted}, that other nodes can reach, got {got(value)}")
    return str(parsed)


def interfaces(value: object) -> tuple[str, ...]:
    """Names of network interfaces."""
    return _list_of(value, _INTERFACE, "names of network interfaces")


def hcas(value: object) -> tuple[str, ...]:
    """Names of RDMA devices, as in /sys/class/infiniband."""
    return _list_of(value, _HCA, "names of RDMA devices")


def hf_cache(value: object) -> str:
    """The folder that holds ``models--ORG--NAME``."""
    if not isinstance(value, str):
        raise ValueError(f"expected an absolute path, got {got(value)}")
    return words.absolute(value.rstrip("/") or "/")


def secrets(value: object) -> str:
    """A file on the controller with the values of secret variables."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected the path of a file on this machine, got {got(value)}")
    return value


def gpus(value: object) -> bool:
    """Whether the container gets the node's GPUs."""
    if not isinstance(value, bool):
        raise ValueError(f"expected True or False, got {got(value)}")
    return value


def alert(value: object) -> str:
    """A shell command that is run on a node when a person should hear of the gang."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a shell command, got {got(value)}")
    return value


def image_source(value: object) -> str:
    """Where the gang's image comes from."""
    image_origin.origin(value)
    return str(value)


def waive(value: object) -> tuple[str, ...]:
    """Names of preflight checks."""
    names = _list_of(value, _CHECK, "names of checks")
    for name in names:
        if name not in NAMES:
            raise ValueError(f"there is no check {got(name)}; {did_you_mean(name, NAMES)}")
    return names


def _list_of(value: object, kind: re.Pattern[str], what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ValueError(f"expected a list of {what}, got {got(value)}; write [{got(value)}]")
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list of {what}, got {got(value)}")
    names: list[str] = []
    for name in value:
        if not isinstance(name, str) or not kind.fullmatch(name):
            raise ValueError(f"expected {what}, got {got(name)} in the list")
        if name in names:
            raise ValueError(f"{name} stands in the list twice")
        names.append(name)
    return tuple(names)
