"""Checks of the machine: root, memory, kernel, upgrades that wait for a restart."""

from __future__ import annotations

import json

from pyinfra_vllm import flags
from pyinfra_vllm.preflight.finding import (
    GIB,
    STOPPED,
    Place,
    Results,
    fail,
    gib,
    ok,
    unknown,
    warn,
)
from pyinfra_vllm.recipe import Recipe

_SPARE = GIB
_DEFAULT_UTILIZATION = 0.9


def root(place: Place) -> Results:
    """Docker, systemd and /var/lib belong to root."""
    uid = place.state.system.required.uid
    if uid:
        yield fail(f"commands run as uid {uid}", "root is needed", "set _sudo in the inventory")
    else:
        yield ok("commands run as root")


def memory(place: Place) -> Results:
    """vLLM refuses to start without utilization x total; 1 GiB more keeps the system alive."""
    if not place.node.gpus or _has_memory_of_its_own(place):
        return
    if place.runs_ours:
        yield ok("in use by the gang's own engine")
        return
    system = place.state.system.required
    share = utilization(place.recipe)
    needed = share * system.memory_total + _SPARE
    measured = f"{gib(system.memory_available)} of {gib(system.memory_total)} are available"
    limit = f"{gib(needed)} are needed ({share:g} of all and 1 GiB)"
    if system.memory_available >= needed:
        yield ok(f"{measured}, {limit}")
    elif place.foreign & set(place.subject.stops):
        yield warn(f"{measured}, {limit}", STOPPED)
    else:
        yield fail(measured, limit, "who takes it: ps -eo pid,user,rss,args --sort -rss | head")


def utilization(recipe: Recipe) -> float:
    """``--gpu-memory-utilization`` of the recipe, or vLLM's default."""
    said = flags.value_of(recipe.args, "--gpu-memory-utilization")
    try:
        return float(said) if said else _DEFAULT_UTILIZATION
    except ValueError:
        return _DEFAULT_UTILIZATION


def _has_memory_of_its_own(place: Place) -> bool:
    gpus = place.state.gpus.value_or(None)
    return gpus is not None and any(gpu.memory_total for gpu in gpus.devices)


def swap(place: Place) -> Results:
    """An engine that fills the memory of a GB10 makes the system swap instead of failing."""
    system = place.state.system.required
    if not place.node.gpus or not system.swap_total:
        yield ok(f"{gib(system.swap_total)} of swap")
        return
    yield warn(
        f"{gib(system.swap_total)} of swap are on", "a full node stalls instead of failing",
        "sudo swapoff -a (and comment it out in /etc/fstab)",
    )  # fmt: skip


def hugepages(place: Place) -> Results:
    """Reserved huge pages are memory that the engine can't get."""
    pages = int(place.state.sysctls.required.get("vm.nr_hugepages") or 0)
    if pages * (2 << 20) <= GIB:
        yield ok(f"{pages} huge pages are reserved")
    else:
        yield warn(
            f"{pages} huge pages are reserved", "and the engine can't use that memory",
            "sudo sysctl -w vm.nr_hugepages=0",
        )  # fmt: skip


def cma(place: Place) -> Results:
    """More free than there is: the kernel's books are wrong since a handover (KHO)."""
    system = place.state.system.required
    if system.cma_total is None or system.cma_free is None:
        yield ok("no contiguous memory is reserved")
    elif system.cma_free > system.cma_total:
        yield fail(
            f"CmaFree ({gib(system.cma_free)}) is above CmaTotal ({gib(system.cma_total)})",
            "the kernel's memory counts are wrong after a handover (KHO)",
            "boot with kho=off: add it to GRUB_CMDLINE_LINUX in /etc/default/grub, then "
            "sudo update-grub && sudo reboot",
        )
    else:
        yield ok(f"CmaFree {gib(system.cma_free)} of {gib(system.cma_total)}")


def io_uring(place: Place) -> Results:
    """Tables on disk are read through io_uring, which the kernel may forbid."""
    value = place.state.sysctls.required.get("kernel.io_uring_disabled")
    if value is None:
        yield ok("this kernel has no switch for io_uring")
    elif value == "0":
        yield ok("kernel.io_uring_disabled is 0")
    else:
        judge = fail if reads_tables_from_disk(place.recipe) else warn
        yield judge(
            f"kernel.io_uring_disabled is {value}", "0 is needed to read tables from disk",
            "echo kernel.io_uring_disabled=0 | sudo tee /etc/sysctl.d/90-pyinfra-vllm.conf && "
            "sudo sysctl --system",
        )  # fmt: skip


def reads_tables_from_disk(recipe: Recipe) -> bool:
    """Whether ``--engram-config`` keeps the tables on disk."""
    said = flags.value_of(recipe.args, "--engram-config")
    try:
        config = json.loads(said) if said else {}
    except ValueError:
        return False
    return isinstance(config, dict) and config.get("table_memory") == "disk"


def pending(place: Place) -> Results:
    """What was upgraded and not restarted: the next boot or restart brings another system."""
    found = place.state.pending.required
    docker, gpus = place.state.docker.required, place.state.gpus.value_or(None)
    kernel = place.state.system.required.kernel
    problems = []
    if found.kernel and found.kernel != kernel:
        problems.append(f"kernel {found.kernel} is installed, {kernel} runs")
    if found.docker and found.docker != docker.version:
        problems.append(f"docker {found.docker} is installed, {docker.version} runs")
    if found.driver and gpus and gpus.driver and found.driver != gpus.driver:
        problems.append(f"driver {found.driver} is installed, {gpus.driver} is loaded")
    if found.reboot is not None:
        problems.append(f"a reboot is asked for ({', '.join(found.reboot) or 'no package named'})")
    if problems:
        yield warn("; ".join(problems), "", "sudo reboot, when the gang may stop")
    else:
        yield ok("what is installed is what runs")


def clock(place: Place) -> Results:
    """Logs, leases and certificates want one time; 2 s apart is too much."""
    offset = offset_of(place)
    if offset is None:
        yield unknown("it is not known when the node was asked")
        return
    synchronised = place.state.clock.value_or(None)
    follows = synchronised.synchronised if synchronised else None
    if abs(offset) > 2:
        yield fail(
            f"the clock is {offset:+.1f} s off this machine's", "2 s are allowed",
            "sudo timedatectl set-ntp true; timedatectl status",
        )  # fmt: skip
    else:
        words = "may follow a time server" if follows is None else "follows no time server"
        words = "follows a time server" if follows else words
        yield ok(f"the clock is within 2 s of this machine's and {words}")


def offset_of(place: Place) -> float | None:
    """Seconds by which the node's clock is surely off; 0 within the time that asking took."""
    asked, received = place.state.query.asked, place.state.received
    if asked is None or received is None:
        return None
    now = place.state.system.required.now
    return now - received if now > received else min(0.0, now - asked)
