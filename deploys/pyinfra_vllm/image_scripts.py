"""The scripts that build, send, load and remove images on nodes, with what they are asked. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import paths
from pyinfra_vllm.image import LABEL, Build, build_command, context_tar
from pyinfra_vllm.image_files import DOCKERFILE

SHARE_PORT = 29502
"""Where the node that has the image offers it to the others, for the length of one deploy."""
DISK_GIB = 10
"""Room that a build needs on docker's disk when its profile doesn't say."""

_NODE = Path(__file__).parent / "node"
_SLOT = "REQUEST: dict[str, Any] = {}\n"


def build_unit(build: Build) -> str:
    """The transient unit that builds it; the same for all who want this build."""
    return f"pyinfra-vllm-build-{build.digest[:12]}"


def building(build: Build, gang: str = "main") -> str:
    """Build the image in its unit, or watch the unit. UserError while something is ``todo``.

    The unit renews the lease of a build window of ``gang``, where there is one.
    """
    return _script(
        "build",
        unit=build_unit(build),
        folder=f"{paths.STATE_ROOT}/builds/{build.digest}",
        argv=build_command(build),
        context=base64.b64encode(context_tar(build)).decode(),
        tag=build.tag,
        label=LABEL,
        lease=paths.paused(gang),
        digest=build.digest,
        steps=steps(build),
        disk_gib=build.needs.disk_gib or DISK_GIB,
    )


def steps(build: Build) -> int:
    """How many steps a build from nothing has, as BuildKit counts them."""
    text = build.files[DOCKERFILE].decode(errors="replace")
    stages = set(re.findall(r"(?mi)^FROM .* AS (\S+)", text))
    starts = re.findall(r"(?mi)^FROM (?:--\S+ )?(\S+)", text)
    changes = re.findall(r"(?mi)^(?:RUN|COPY|ADD|WORKDIR) ", text)
    return len(changes) + sum(1 for start in starts if start not in stages)


def sharing(image: str, address: str, token: str, receivers: int, port: int = SHARE_PORT) -> str:
    """Send the image with this Id to ``receivers`` nodes."""
    return _script(
        "share",
        image=image,
        address=address,
        port=port,
        token=token,
        receivers=receivers,
        grace=20,
    )


def receiving(
    tag: str,
    digest: str | None,
    layers: Sequence[str],
    size: int,
    address: str,
    token: str,
    port: int = SHARE_PORT,
) -> str:
    """Load what another node sends."""
    value = [address, port]
    return _receive(tag, digest, layers, size, "node", value, token)


def loading(tag: str, digest: str | None, kind: str, value: str) -> str:
    """Load an ``archive``, or pull from a ``registry``."""
    return _receive(tag, digest, (), 0, kind, value, "")


def pruning(keep: Sequence[str]) -> str:
    """Remove our images that no release names and ``keep`` doesn't."""
    return _script("prune", label=LABEL, root=paths.STATE_ROOT, keep=list(keep))


def _receive(
    tag: str,
    digest: str | None,
    layers: Sequence[str],
    size: int,
    kind: str,
    value: object,
    token: str,
) -> str:
    return _script(
        "receive",
        tag=tag,
        digest=digest,
        label=LABEL,
        layers=list(layers),
        size=size,
        token=token,
        value=value,
        **{"from": kind},
    )


def _script(name: str, **request: Any) -> str:
    text, document = _text(name), json.dumps(request)
    return text.replace(_SLOT, f"import json as _json\nREQUEST = _json.loads({document!r})\n")


@cache
def _text(name: str) -> str:
    text = (_NODE / f"{name}.py").read_text(encoding="utf-8")
    if text.count(_SLOT) != 1:
        raise RuntimeError(f"node/{name}.py: expected one line {_SLOT!r}")
    return text
