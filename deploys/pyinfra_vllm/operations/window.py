"""Operations: a build window, in which a gang is paused so that its head can build an image.

The pause is a lease. The controller renews it, and so does the unit that builds, which goes on
without the controller; when both are gone, the old release serves again after
:data:`~pyinfra_vllm.build_window.LEASE` seconds. A run that ends before the switch, be it by ^C
or by a failure, closes the window when it disconnects.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import gevent
from pyinfra import logger
from pyinfra.api import Host, State, StringCommand, operation
from pyinfra.api.state import BaseStateCallback

from pyinfra_vllm import build_window, controller
from pyinfra_vllm.agent import paths
from pyinfra_vllm.build_window import RENEW_EVERY
from pyinfra_vllm.image import Build
from pyinfra_vllm.image_origin import price
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    look,
    look_at_gang,
    run,
    show,
    this_node,
)
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import Release

_WAITS = 30
"""Looks, half a second apart, at whether the head has noticed that a window is closed."""

_OPEN: WeakKeyDictionary[State, dict[str, gevent.Greenlet]] = WeakKeyDictionary()
"""What renews the windows of a run, by the name of the head."""


@operation()
@changing
def opened(release: Release, build: Build) -> Commands:
    """The gang is paused, and its engine has left the head, where the image must be built so.

    Only when no node has the image, and the head has no room for the build beside its engine.

    + release: what the gang is to serve
    + build: what is to be built
    """
    gang = release.content.gang.name
    if this_node(release).rank != 0:
        return
    if not build_window.is_needed(release, build, look_at_gang(release)):
        return
    show(f"Will open a build window: {price(build)}")
    yield from change(called(_open, gang, build))


def _open(state: State, host: Host, gang: str, build: Build) -> bool:
    logger.warning(f"{host.print_prefix}build window: {price(build)}")
    script = build_window.opening(gang, controller.user(), build.tag)
    ok, _ = run(host, host, StringCommand(build_window.COMMAND), stdin=script)
    if not ok:
        logger.error(f"{host.print_prefix}the build window can't be opened; nothing is paused")
        return False
    renewals = _OPEN.get(host.state)
    if renewals is None:
        renewals = _OPEN[host.state] = {}
        host.state.add_callback_handler(_AtEnd())
    renewals[host.name] = gevent.spawn(_renew, host, gang)
    # The agent that starts now knows of leases, whatever ran before.
    ok, _ = run(host, host, StringCommand("systemctl", "restart", paths.unit(gang)))
    return ok or _close(host, gang)


def _renew(host: Host, gang: str) -> None:
    while True:
        gevent.sleep(RENEW_EVERY)
        try:
            ok, _ = run(
                host, host, StringCommand(build_window.COMMAND), stdin=build_window.renewing(gang)
            )
        except Exception:  # each connector has its own: the node is away for now
            continue
        if not ok:
            logger.warning(f"{host.print_prefix}the build window is closed: the gang serves again")
            return


@operation()
@changing
def closed(release: Release) -> Commands:
    """No build window is open any more; the gang starts what its head wants.

    + release: what the gang is to serve
    """
    if this_node(release).rank:
        return
    marker = look(release).file(paths.paused(release.content.gang.name))
    if not build_window.has_lease(marker):
        return
    show("Will close the build window: the gang serves again")
    yield from change(called(_closed, release.content.gang.name))


def _closed(state: State, host: Host, gang: str) -> bool:
    _close(host, gang)
    command = StringCommand("cat", paths.status_file(gang))
    for _ in range(_WAITS):
        ok, output = run(host, host, command)
        if not ok or '"paused"' not in output.stdout:
            break
        gevent.sleep(0.5)
    return True


def _close(host: Host, gang: str) -> bool:
    """Always False: what it is called for has failed, or is at its end."""
    renewal = _OPEN.get(host.state, {}).pop(host.name, None)
    if renewal:
        renewal.kill()
    run(host, host, StringCommand(build_window.COMMAND), stdin=build_window.closing(gang))
    return False


def _leave(host: Host, gang: str) -> None:
    """The run ends without a switch: while the build goes on, so does its window."""
    ok, _ = run(host, host, StringCommand("systemctl is-active --quiet 'pyinfra-vllm-build-*'"))
    if not ok:
        logger.warning(f"{host.print_prefix}the build window is closed without a switch")
        _close(host, gang)
        return
    logger.warning(
        f"{host.print_prefix}the build goes on in its window; run the same command again to go on "
        f"with it, else the gang serves again {build_window.LEASE // 60} minutes after the build"
    )


class _AtEnd(BaseStateCallback):
    @staticmethod
    def host_disconnect(state: State, host: Host) -> None:
        if host.name in _OPEN.get(host.state, {}):
            from pyinfra_vllm.facts.inventory import gang_of

            _leave(host, gang_of(host))
