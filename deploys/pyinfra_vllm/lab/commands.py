"""``pyinfra-vllm lab up`` and ``down``: bring a lab from any state to the wanted one."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import (
    cache,
    disk,
    host,
    images,
    keys,
    machine,
    nas,
    network,
    root,
    ssh,
    state,
    surroundings,
)
from pyinfra_vllm.lab.layout import (
    STATE,
    Layout,
    Machine,
    check_name,
)
from pyinfra_vllm.lab.shell import Steps, locked, note

_SSH_SECONDS = 90.0
_DOCKER_SECONDS = 90.0


def up(name: str, with_images: bool = True) -> Layout:
    """Bring the lab up; what is up already is left alone, machines that are off are started.

    ``with_images``: the head gets the images that builds start from.
    """
    steps = Steps()
    host.require(steps)
    host.allow_many_watches()
    with locked(f"lab.{check_name(name)}"), ThreadPoolExecutor(2) as beside:
        layout = state.load_or_create(name)
        # In this order: all wait for the root, only the end of it for the images.
        lower = beside.submit(_choose_root, steps, layout)
        archives = images.archives() if with_images else ()
        made = [beside.submit(cache.ensure, steps, a.path, a.make) for a in archives]
        lower.result()
        _start(steps, layout)
        for future in made:
            future.result()
        _import(steps, layout, archives)
    steps.total(f"lab {name} is up: {describe(layout)}")
    return layout


def down(name: str, keep: bool = False) -> None:
    """Remove every process, mount, bridge, rule and cgroup of the lab, and its state.

    Works on a half-made lab and after a reboot of this machine. ``keep``: the
    machines are shut down in order, and their disks stay for the next ``up``.
    """
    host.require_root()
    steps = Steps()
    folder = STATE / check_name(name)
    with locked(f"lab.{name}"):
        existed = folder.exists()
        if keep:
            with steps.step("machines shut down"):
                _power_off(name)
        machine.remove_all(name)
        disk.unmount(folder)
        existed |= network.remove(f"vl-{name}")
        if folder.exists() and not keep:
            shutil.rmtree(folder)
    steps.total(f"lab {name} is down" if existed else f"there was no lab {name}")


def describe(layout: Layout) -> str:
    return ", ".join(f"{node.name} {node.address}" for node in layout.machines)


def each(nodes: Sequence[Machine], work: Callable[[Machine], object]) -> None:
    """Do ``work`` for all nodes at once; the first error is raised when all have ended."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(work, nodes))


def _start(steps: Steps, layout: Layout) -> None:
    """Everything from the bridge to four nodes with the model, a shard, sshd and dockerd."""
    if surroundings.resolv_conf() is None:
        note("no name server outside loopback found: the nodes will resolve no names")
    keys.ensure(layout)
    network.ensure(layout)
    if nas.ensure(layout):
        note(f"model {nas.REPO} made in {layout.nas / 'hub'}")
    started = [node for node in layout.machines if _start_node(layout, node)]
    if started:
        with steps.step(f"{', '.join(node.name for node in started)} started, answering ssh"):
            each(started, lambda node: ssh.wait(layout, node, _SSH_SECONDS))
    with steps.step("dockerd runs on every node"):
        each(layout.machines, lambda node: ssh.wait_for_docker(layout, node, _DOCKER_SECONDS))


def _choose_root(steps: Steps, layout: Layout) -> None:
    """Settle which root is below the lab's overlays, for as long as the lab lives."""
    if not layout.lower.exists():
        layout.lower.unlink(missing_ok=True)
        layout.lower.symlink_to(cache.ensure(steps, root.cached(), root.make))


def _start_node(layout: Layout, node: Machine) -> bool:
    disk.ensure(layout, node)
    nas.ensure_local_shard(layout, node)
    return machine.start(layout, node)


def _import(steps: Steps, layout: Layout, archives: Sequence[images.Archive]) -> None:
    for archive in images.missing(layout, archives):
        with steps.step(f"{layout.machines[0].name} has image {archive.tag}"):
            images.import_archive(layout, archive)


def _power_off(name: str) -> None:
    """Shut down what can be: a lab without a readable lab.json is cut off later."""
    layout = None
    with contextlib.suppress(UserError):
        layout = state.load(name)
    if layout is not None:
        found = layout
        each(found.machines, lambda node: machine.power_off(found, node))
