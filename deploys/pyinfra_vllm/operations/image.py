"""Operations: the image of a release, built once and the same on every node.

It comes from where the inventory's ``vllm_image_source`` says: built on the head or on a
builder and sent from there to all nodes at once, or loaded by each from an archive or a
registry. It is sent over the fabric, by ``docker save`` and ``docker load`` with a small
sender and receiver between them: both ends are on every node that has docker and python3,
nothing is compressed on a link of 200 Gb/s, no copy lies on a disk on the way, and no node
needs to reach another by ssh. A registry would want all of these.
"""

from __future__ import annotations

from pyinfra import host, logger, state
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import image_scripts
from pyinfra_vllm.changes import image_on, image_source, unused_images
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import Build
from pyinfra_vllm.image_origin import refusal
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look,
    look_at_gang,
    run,
    show,
    this_node,
)
from pyinfra_vllm.operations.image_sender import (
    COMMAND,
    builder,
    lacking,
    offer,
    origin_of,
    sender,
    withdraw,
)
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.pruning import old_releases
from pyinfra_vllm.questions import SHARE_UNIT_FILE
from pyinfra_vllm.release import Release


@operation()
@explained
def built(release: Release, build: Build, in_window: bool = False) -> Commands:
    """The image of the build digest exists on some node; else the head or the builder builds it.

    It is built in a unit of its own, which a lost connection or ^C leaves running.

    + release: what the gang is to serve
    + build: the rendered Dockerfile and its context
    + in_window: a build window is opened where one is needed
    """
    states = look_at_gang(release)
    origin = origin_of(host)
    if this_node(release).rank != 0 or origin.each_for_itself or image_source(release, states):
        return
    if origin.kind == "present":
        raise UserError(
            f"no node has the image of build {build.digest[:12]} ({build.tag}), and "
            'vllm_image_source says "present"; put it there, or say where it comes from'
        )
    at = builder(host) or host
    reason = refusal(build, states[host.name]) if at is host else None
    if reason and (state.is_executing or not in_window):
        raise UserError(reason)
    show(f"Will build {build.tag} (build {build.digest[:12]}) on {at.name}")
    for line in build.deviations:
        show(f"  deviates: {line}")
    if build.missing:
        show(f"  refused until {len(build.missing)} facts are known: todo in {build.origin}")
    yield from change(called(_build, at.name, build, release.content.gang.name))


def _build(state: State, host: Host, at: str, build: Build, gang: str) -> bool:
    place = state.inventory.get_host(at)
    ok, _ = run(place, host, StringCommand(COMMAND), True, image_scripts.building(build, gang))
    if not ok:
        unit = image_scripts.build_unit(build)
        logger.error(f"{host.print_prefix}the image isn't built; on {at}: journalctl -u {unit}")
    return ok


@operation()
@changing
def loaded(release: Release) -> Commands:
    """The node has the image from the archive or registry that the inventory names, if it does.

    + release: what the gang is to serve
    """
    origin, content = origin_of(host), release.content
    if not origin.each_for_itself or image_on(release, look(release)):
        return
    tag = content.recipe.docker_image
    show(f"Will load {tag} from {origin.value}")
    script = image_scripts.loading(tag, content.build, origin.kind, origin.value)
    yield from change(StringCommand(COMMAND, _stdin=script))


@operation()
@changing
def offered(release: Release, token: str) -> Commands:
    """The node that has the image offers it, while another node lacks it.

    + release: what the gang is to serve
    + token: a random name, the same for this operation, `present` and `withdrawn`
    """
    states = look_at_gang(release)
    needing = lacking(release, states)
    found = sender(release, states)
    if origin_of(host).each_for_itself or not needing or not found.is_for(this_node(release)):
        return
    receivers = [node for node in needing if node.name != found.host.name]
    yield from change(called(offer, found, token, len(receivers)))


@operation()
@changing
def present(release: Release, token: str) -> Commands:
    """The image of the build digest is on this node, with the same content as on the others.

    + release: what the gang is to serve
    + token: as given to `offered`
    """
    states, node = look_at_gang(release), this_node(release)
    needing = lacking(release, states)
    if origin_of(host).each_for_itself or not needing:
        return
    found = sender(release, states)
    if node not in needing or found.host.name == node.name:
        return
    if state.is_executing and not found.image:
        raise UserError(f"{found.host.name} has no image to send; see the lines above")
    content = release.content
    tag = content.recipe.docker_image
    show(f"Will load {tag} from {found.host.name}")
    script = image_scripts.receiving(
        tag, content.build, found.layers, found.size, found.address, token, found.port
    )
    yield from change(called(_receive, script))


def _receive(state: State, host: Host, script: str) -> bool:
    ok, _ = run(host, host, StringCommand(COMMAND), True, script)
    return ok


@operation()
@changing
def withdrawn(release: Release) -> Commands:
    """Nothing is offered any more.

    + release: what the gang is to serve
    """
    states, node = look_at_gang(release), this_node(release)
    offers = states[node.name].file(SHARE_UNIT_FILE) is not None
    needed = not origin_of(host).each_for_itself and lacking(release, states)
    found = sender(release, states) if needed else None
    if offers:
        yield from change(called(withdraw, host.name))
    elif found and found.is_for(node):
        yield from change(called(withdraw, found.host.name, found.unit))


@operation()
@changing
def pruned(release: Release) -> Commands:
    """No image of ours is left that neither a release nor a container on the node uses.

    + release: what the gang is to serve
    """
    old = old_releases(release, look_at_gang(release)).get(host.name, ())
    unused = unused_images(release, look(release), old)
    if not unused:
        return
    for image in unused:
        name = image.tags[0] if image.tags else image.id[:19]
        show(f"Will remove the image {name}: up to {image.size >> 20} MiB")
    keep = [release.content.build] if release.content.build else []
    yield from change(called(_receive, image_scripts.pruning(keep)))
