"""Where a gang's image comes from: the inventory's ``vllm_image_source``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra_vllm.image import Build
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.suggest import did_you_mean
from pyinfra_vllm.validation import got

KEY = "vllm_image_source"
GIB = 1 << 30
ROOM_GIB = 4
"""What stays for the engine and the system when something is built beside them."""

_HOST = r"[^\s:]+"
_PATH = r"/\S+"
_PINNED = r"\S+@sha256:[0-9a-f]{64}"
_KINDS = {
    "head": ("", "the head builds it"),
    "window": ("", "the head builds it, and the gang is paused for the time of the build"),
    "builder": (_HOST, "a host of the inventory outside the gang builds it"),
    "archive": (_PATH, "a file of docker save, on storage that every node sees"),
    "registry": (_PINNED, "a registry has it, as repository@sha256:…"),
    "present": ("", "it is put on the nodes by other means"),
}
_EXAMPLES = {
    "builder": "builder:HOST",
    "archive": "archive:/PATH.tar",
    "registry": "registry:REPOSITORY@sha256:DIGEST",
}


@dataclass(frozen=True)
class Origin:
    """``kind`` is one of the words before a colon; ``value`` is what follows it."""

    kind: str = "head"
    value: str = ""

    @property
    def each_for_itself(self) -> bool:
        """Whether every node loads the image, and none sends it to the others."""
        return self.kind in ("archive", "registry")


def origin(value: object) -> Origin:
    """``value`` of ``vllm_image_source``; ValueError says what it may be."""
    if value is None:
        return Origin()
    if not isinstance(value, str):
        raise ValueError(f"expected one of {_choices()}, got {got(value)}")
    kind, _, rest = value.partition(":")
    if kind not in _KINDS:
        raise ValueError(f"{got(value)} is no source of images; {did_you_mean(kind, _KINDS)}")
    if not re.fullmatch(_KINDS[kind][0], rest):
        raise ValueError(f"expected {_EXAMPLES.get(kind, kind)}, got {got(value)}")
    return Origin(kind, rest)


def builders(hosts: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Names of the hosts that build for others, from the data of every host of the inventory.

    A value that can't be read names none: whoever reads the gang says what is wrong with it.
    """
    names = set()
    for data in hosts.values():
        try:
            found = origin(data.get(KEY))
        except ValueError:
            continue
        names |= {found.value} if found.kind == "builder" else set()
    return names


def refusal(build: Build, state: NodeState) -> str | None:
    """Why the image can't be built on a node beside what serves there; None: it can."""
    if not any(one.ours and one.running for one in state.containers.required):
        return None
    system, needs = state.system.required, build.needs
    room = system.memory_available / GIB
    if needs.memory_gib is not None and room >= needs.memory_gib + ROOM_GIB:
        return None
    takes = f"up to {needs.memory_gib} GiB" if needs.memory_gib else "what its profile doesn't say"
    lines = [
        f"the image {build.tag} is to be built here, and the node serves: {room:.1f} of "
        f"{system.memory_total / GIB:.1f} GiB of memory are available, the build takes {takes}, "
        f"and {ROOM_GIB} GiB must stay free. Say in the inventory where the image comes from:"
    ]
    lines += [f'  {KEY} = "{_EXAMPLES.get(kind, kind)}": {text}' for kind, text in _others()]
    if needs.minutes:
        lines.append(f"a build from nothing takes about {needs.minutes} minutes")
    return "\n".join(lines)


def price(build: Build) -> str:
    """What a build window costs, as far as the profile tells."""
    minutes = f"about {build.needs.minutes}" if build.needs.minutes else "an unknown number of"
    return (
        f"the gang doesn't serve for {minutes} minutes (a build from nothing), and until the image "
        "is on all nodes and the new release has started"
    )


def _others() -> list[tuple[str, str]]:
    return [(kind, text) for kind, (_, text) in _KINDS.items() if kind != "head"]


def _choices() -> str:
    return ", ".join(f'"{_EXAMPLES.get(kind, kind)}"' for kind in _KINDS)
