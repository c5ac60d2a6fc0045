"""Operations: the image of a release, built once and the same on every node.

The nodes fetch it from the one that has it, over the fabric, while the operation runs:
``docker save`` to a file, offered by python's http.server on the fabric address under a
name nobody can guess, ``docker load`` on the others. The controller's link carries
none of it and the nodes need no ssh between them.
"""

from __future__ import annotations

import base64
import shlex
from functools import cache
from pathlib import Path

from pyinfra.api import FunctionCommand, Host, State, StringCommand, operation

from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import image_lacking, image_on, image_source
from pyinfra_vllm.image import Build, build_command, context_tar
from pyinfra_vllm.operations.common import (
    Commands,
    change,
    explained,
    look_at_gang,
    run,
    show,
    this_node,
)
from pyinfra_vllm.questions import SHARE_UNIT, SHARE_UNIT_FILE
from pyinfra_vllm.release import Release

SHARE_PORT = 29502
"""Where the node that has the image offers it to the others, for the length of one deploy."""

_SHARE_LEASE = 3600
_LOG_LINES = 40


@operation()
@explained
def built(release: Release, build: Build) -> Commands:
    """The image of the build digest exists on some node of the gang; the head builds it.

    + release: what the gang is to serve
    + build: the rendered Dockerfile and its context
    """
    if this_node(release).rank != 0 or image_source(release, look_at_gang(release)):
        return
    show(f"Will build {build.tag} (build {build.digest[:12]})")
    yield from change(FunctionCommand(_build, (build,), {}))


def _build(state: State, host: Host, build: Build) -> bool:
    """Run the build with its steps shown; on failure show the log's last lines."""
    log = f"/var/log/pyinfra-vllm-build-{build.digest[:12]}.log"
    script = (
        "set -o pipefail; "
        f"if base64 -d | DOCKER_BUILDKIT=1 {shlex.join(build_command(build))} 2>&1 | tee {log} "
        "| { grep --line-buffered -E '^#[0-9]+ \\[' || true; }; then exit 0; fi; "
        f"echo 'The build failed. Its last {_LOG_LINES} lines (all of it: {log}):' >&2; "
        f"tail -n {_LOG_LINES} {log} >&2; exit 1"
    )
    context = base64.b64encode(context_tar(build)).decode()
    ok, _ = run(host, host, StringCommand("bash", "-c", shlex.quote(script)), True, context)
    return ok


@operation()
@explained
def offered(release: Release, token: str) -> Commands:
    """The node that has the image offers it, while another node lacks it.

    + release: what the gang is to serve
    + token: a random name, the same for this operation, `present` and `withdrawn`
    """
    states = look_at_gang(release)
    source = image_source(release, states) or release.content.gang.head
    if this_node(release) != source or not image_lacking(release, states):
        return
    folder = f"{paths.STATE_ROOT}/share"
    image = image_on(release, states[source.name])
    reference = image.id if image else release.content.recipe.docker_image
    yield from change(
        StringCommand(
            f"systemctl stop {SHARE_UNIT} 2>/dev/null; systemctl reset-failed {SHARE_UNIT} "
            f"2>/dev/null; rm -rf {folder} && mkdir -p -m 0700 {folder}/{token} && "
            f"docker save {shlex.quote(reference)} -o {folder}/{token}/image.tar && "
            f"systemd-run --quiet --unit {SHARE_UNIT} --property RuntimeMaxSec={_SHARE_LEASE} "
            f"--property 'ExecStopPost=/bin/rm -rf {folder}' "
            f"python3 -m http.server {SHARE_PORT} --bind {source.fabric_address} "
            f"--directory {folder}"
        )
    )


@operation()
@explained
def present(release: Release, token: str) -> Commands:
    """The image of the build digest is on this node, with the same content as on the others.

    + release: what the gang is to serve
    + token: as given to `offered`
    """
    states = look_at_gang(release)
    node = this_node(release)
    source = image_source(release, states) or release.content.gang.head
    if node not in image_lacking(release, states):
        return
    tag = release.content.recipe.docker_image
    show(f"Will load {tag} from {source.name}")
    url = f"http://{source.fabric_address}:{SHARE_PORT}/{token}/image.tar"
    script = (
        "set -o pipefail; "
        f"loaded=$(python3 - {url} | docker load -q) && "
        f'docker tag "${{loaded##*: }}" {shlex.quote(tag)}'
    )
    yield from change(StringCommand("bash", "-c", shlex.quote(script), _stdin=_fetch()))


@cache
def _fetch() -> str:
    return (Path(__file__).parents[1] / "node" / "fetch.py").read_text(encoding="utf-8")


@operation()
@explained
def withdrawn(release: Release) -> Commands:
    """Nothing is offered any more.

    + release: what the gang is to serve
    """
    states = look_at_gang(release)
    source = image_source(release, states) or release.content.gang.head
    node = this_node(release)
    offers = states[node.name].file(SHARE_UNIT_FILE) is not None
    if offers or (node == source and image_lacking(release, states)):
        yield from change(StringCommand(f"systemctl stop {SHARE_UNIT} 2>/dev/null; true"))
