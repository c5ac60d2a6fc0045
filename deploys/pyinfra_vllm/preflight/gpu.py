"""Checks of GPUs, driver, container runtime, and who else uses them."""

from __future__ import annotations

from pyinfra_vllm.node.models import Gpus
from pyinfra_vllm.preflight.finding import (
    STOPPED,
    Place,
    Results,
    fail,
    gib,
    ok,
    stop_it,
    unknown,
    warn,
)


def architecture(place: Place) -> Results:
    """An image runs on the processor that it was built for."""
    machine = place.state.system.required.architecture
    build = place.subject.build
    if build is None or not build.machine:
        yield unknown(f"{machine}; nobody says what the image was built for")
    elif build.machine == machine:
        yield ok(machine)
    else:
        yield fail(
            f"the processor is {machine}",
            f"the image is built for {build.machine}",
            "choose a recipe for this machine",
        )


def compute_capability(place: Place) -> Results:
    """Kernels are compiled for the compute capabilities that the profile lists."""
    wanted = place.subject.build.gpus if place.subject.build else ()
    if not place.node.gpus or not wanted:
        return
    allowed = {text.rstrip("af") for text in wanted}
    devices = place.state.gpus.required.devices
    if not devices:
        yield fail("no GPU is there", "vllm_gpus is True", "see: nvidia-smi -L")
    for device in devices:
        shown = f"{device.name} has compute capability {device.capability}"
        if device.capability in allowed:
            yield ok(shown)
        elif device.capability is None:
            yield unknown(f"{device.name}: its compute capability is not known")
        else:
            yield fail(shown, f"the image is compiled for {', '.join(wanted)}",
                       "choose a recipe whose image is built for this GPU")  # fmt: skip


def driver(place: Place) -> Results:
    """The driver is loaded, answers, and knows the CUDA that the image was built with."""
    if not place.node.gpus:
        return
    gpus = place.state.gpus.required
    if gpus.driver is None:
        yield fail(
            "NVIDIA's driver is not loaded", "vllm_gpus is True",
            "sudo modprobe nvidia, or sudo apt-get install nvidia-driver-580-open; "
            "a node without GPU says vllm_gpus=False",
        )  # fmt: skip
    elif gpus.error:
        yield fail(f"driver {gpus.driver} doesn't answer ({gpus.error})", "", "sudo reboot")
    else:
        yield from _cuda(place, gpus)


def _cuda(place: Place, gpus: Gpus) -> Results:
    wanted = place.subject.build.cuda if place.subject.build else None
    shown = f"driver {gpus.driver} runs CUDA up to {gpus.cuda}"
    if not wanted or not gpus.cuda:
        yield ok(shown)
    elif _numbers(gpus.cuda)[:1] < _numbers(wanted)[:1]:
        yield fail(shown, f"the image has CUDA {wanted}", "upgrade the driver")
    elif _numbers(gpus.cuda) < _numbers(wanted):
        yield warn(
            shown, f"the image has CUDA {wanted}, which works within one major version",
            "upgrade the driver if the engine misses a symbol",
        )  # fmt: skip
    else:
        yield ok(shown)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def container_runtime(place: Place) -> Results:
    """``docker run --gpus all`` needs NVIDIA's hook or runtime."""
    if not place.node.gpus:
        return
    runtimes = place.state.docker.required.runtimes
    hooks = place.state.gpus.required.hooks
    if "nvidia" in runtimes or hooks:
        yield ok(f"runtimes {', '.join(runtimes)}; {', '.join(hooks) or 'no hook'}")
    else:
        yield fail(
            f"docker can't give GPUs to containers (runtimes: {', '.join(runtimes)})",
            "NVIDIA's container toolkit is needed",
            "sudo apt-get install -y nvidia-container-toolkit && "
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        )


def gpu_users(place: Place) -> Results:
    """A foreign process that computes takes the engine's memory."""
    if not place.node.gpus:
        return
    own = place.state.container(place.container)
    found = False
    for process in place.state.gpus.required.processes:
        ours = own is not None and own.id and process.container_id == own.id
        if ours or not process.computes:
            continue
        found = True
        owner = place.owner(process)
        measured = (
            f"pid {process.pid} ({process.name}, user {process.user or 'unknown'}"
            f"{f', {owner}' if owner else ''}) has {gib(process.memory or 0)} on the GPU"
        )
        if place.is_stopped(process):
            yield warn(measured, STOPPED)
            continue
        yield fail(
            measured, "no foreign process may have more than 1 GiB",
            stop_it(place, process, process.pid),
        )  # fmt: skip
    if not found:
        yield ok("no foreign process computes on it")


def engines(place: Place) -> Results:
    """Another engine on the node competes for memory, sooner or later."""
    ours = place.state.container(place.container)
    foreign = [
        engine
        for engine in place.state.engines.required
        if ours is None or engine.container_id != ours.id
    ]
    if not foreign:
        yield ok("no other engine runs")
    for engine in foreign:
        owner = place.owner(engine)
        measured = (
            f"pid {engine.pid} looks like another engine ({' '.join(engine.command)[:100]}, "
            f"user {engine.user}, {gib(engine.memory)}{f', {owner}' if owner else ''})"
        )
        if place.is_stopped(engine):
            yield warn(measured, STOPPED)
        else:
            yield warn(measured, "", stop_it(place, engine, engine.pid))
