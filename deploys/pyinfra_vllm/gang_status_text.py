"""How gangs are, as text for a terminal. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyinfra_vllm.gang_status import Collapse, GangStatus, Rank, Status
from pyinfra_vllm.node.models import Metrics
from pyinfra_vllm.overview import columns

_HEADINGS = ("rank", "node", "unit", "phase", "container", "memory free", "GPU", "drift")
_GIB = 1 << 30


def text(status: Status) -> str:
    """All gangs, one after the other."""
    return "\n\n".join("\n".join(_gang(gang)) for gang in status.gangs) + "\n"


def _gang(gang: GangStatus) -> Iterator[str]:
    yield f"gang {gang.gang}: {gang.phase}{_since(gang)}"
    if gang.release:
        yield f"  {gang.recipe or 'recipe not known'}, release {gang.release[:12]}"
    if gang.paused or gang.phase != "serving":
        yield f"  {gang.detail}"
    if gang.note:
        yield f"  {gang.note}"
    if gang.trial:
        yield f"  release {gang.trial[:12]} is on trial"
    if gang.collapse:
        yield f"  {_collapse(gang.collapse)}"
    if gang.metrics:
        yield f"  {_metrics(gang.metrics)}"
        yield from _references(gang)
    yield from (f"  {line}" for line in columns([_HEADINGS, *map(_row, gang.ranks)]))
    yield from _details(gang)
    if gang.drift_unknown:
        yield f"  drift is not known: {gang.drift_unknown}"


def _since(gang: GangStatus) -> str:
    start = f" (start {gang.start})" if gang.start else ""
    return f" since {moment(gang.since)}{start}" if gang.since else start


def moment(at: float) -> str:
    """A time of this machine's zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _collapse(found: Collapse) -> str:
    again = f"{found.same} collapses, same cause; " if found.same > 1 else ""
    who = f"rank {found.rank}: " if found.rank is not None else ""
    return f"{again}last collapse {moment(found.at)} (start {found.start}): {who}{found.cause}"


def _metrics(found: Metrics) -> str:
    kv = f"{100 * found.kv_usage:.1f} %" if found.kv_usage is not None else "?"
    return (
        f"requests {_number(found.running)} running, {_number(found.waiting)} waiting; "
        f"KV cache {kv}; tokens/s {_number(found.prompt_rate)} prompt, "
        f"{_number(found.generation_rate)} generated"
    )


def _references(gang: GangStatus) -> Iterator[str]:
    """Of one request: compared with what is generated for each that runs."""
    assert gang.metrics is not None
    running, rate = gang.metrics.running or 0, gang.metrics.generation_rate or 0
    for point in gang.references:
        speeds = [f"{point.prefill:g} prompt"] if point.prefill else []
        speeds += [f"{point.decode:g} generated"] if point.decode else []
        now = ""
        if point.decode and running and rate:
            each = rate / running
            now = f"; now {each:.1f} a request ({100 * each / point.decode:.0f} %)"
        yield f"  reference {point.name}: tokens/s {', '.join(speeds)}{now}"


def _row(rank: Rank) -> tuple[str, ...]:
    if not rank.reached:
        return (str(rank.rank), rank.node, "no answer", "-", "-", "-", "-", "?")
    memory = "?"
    if rank.memory_available is not None and rank.memory_total is not None:
        memory = f"{rank.memory_available / _GIB:.1f} of {rank.memory_total / _GIB:.1f} GiB"
    gpu = f"{rank.gpu / _GIB:.1f} GiB" if rank.gpu is not None else "-"
    drift = {True: "yes", False: "no", None: "?"}[rank.drift]
    return (
        str(rank.rank), rank.node, rank.unit, rank.phase, rank.container, memory, gpu, drift,
    )  # fmt: skip


def _details(gang: GangStatus) -> Iterator[str]:
    for rank in gang.ranks:
        if not rank.reached:
            yield f"  {rank.node}: {rank.detail}"
        elif rank.detail and rank.phase != gang.phase:
            yield f"  {rank.node}: {rank.phase}: {rank.detail}"
        for part, why in rank.unread.items():
            yield f"  {rank.node}: {part} can't be read: {why}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
