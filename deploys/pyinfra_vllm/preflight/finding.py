"""What a check finds, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pyinfra_vllm import foreign_names, serving
from pyinfra_vllm.agent import paths
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.image import Build
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.recipe import Recipe

Status = Literal["ok", "warn", "fail", "unknown", "waived"]
GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """The result of one check on one node (``node`` empty: on the gang as a whole).

    ``limit`` is what is needed, as the end of a sentence that begins with ``measured``;
    ``remedy`` is what to do, a command that can be pasted where there is one.
    """

    status: Status
    measured: str
    limit: str = ""
    remedy: str = ""
    check: str = ""
    node: str = ""
    source: str = ""

    @property
    def sentence(self) -> str:
        """Node, fact, limit and remedy in one line."""
        text = self.measured + (f", {self.limit}" if self.limit else "")
        text += f"; {self.remedy}" if self.remedy else ""
        return f"{self.node}: {text}" if self.node else text

    def at(self, node: str) -> Finding:
        """The same on a node."""
        return replace(self, node=node)


def ok(measured: str) -> Finding:
    """The check holds."""
    return Finding("ok", measured)


def warn(measured: str, limit: str = "", remedy: str = "") -> Finding:
    """It can go wrong, and doesn't have to."""
    return Finding("warn", measured, limit, remedy)


def fail(measured: str, limit: str = "", remedy: str = "") -> Finding:
    """It stops the deploy."""
    return Finding("fail", measured, limit, remedy)


def unknown(measured: str) -> Finding:
    """It can't be told."""
    return Finding("unknown", measured)


class Runs(Protocol):
    """A process of the node state."""

    @property
    def pid(self) -> int: ...
    @property
    def container_id(self) -> str | None: ...
    @property
    def unit(self) -> str | None: ...


@dataclass(frozen=True)
class Subject:
    """A gang before a deploy. ``states`` has only the nodes that answered."""

    recipe: Recipe
    gang: Gang
    build: Build | None
    states: Mapping[str, NodeState]
    stops: tuple[str, ...] = ()
    """What of others is stopped right before the switch, as asked for, by its names."""
    alone: bool = True
    """Whether the inventory has no other gang."""

    @property
    def places(self) -> Iterator[Place]:
        """The nodes that answered, in rank order."""
        for node in self.gang.nodes:
            if node.name in self.states:
                yield Place(self, node, self.states[node.name])


@dataclass(frozen=True)
class Place:
    """One node of the gang, and what is known of it."""

    subject: Subject
    node: Node
    state: NodeState

    @property
    def recipe(self) -> Recipe:
        return self.subject.recipe

    @property
    def is_head(self) -> bool:
        return self.node == self.subject.gang.head

    @property
    def container(self) -> str:
        """Name of the gang's container."""
        return paths.container(self.subject.gang.name)

    @property
    def runs_ours(self) -> bool:
        """Whether an engine of this gang runs on the node."""
        found = self.state.container(self.container)
        return found is not None and found.running

    def owner(self, process: Runs) -> str:
        """Container or unit that a process of others belongs to; empty when it is in neither."""
        for one in self.state.containers.value_or(()):
            if one.id == process.container_id:
                return "" if one.ours else one.name
        return getattr(process, "container", None) or process.unit or ""

    def name(self, process: Runs) -> str:
        """What stops it: its owner, or the name of itself.

        Empty for what is ours, and for what can't be named: it isn't seen, or docker, which
        knows it, doesn't answer.
        """
        owner, comm = self.owner(process), getattr(process, "process", "")
        if owner or process.container_id or comm == "docker-proxy":
            return owner
        return foreign_names.of_process(process.pid, self.node.name)

    def is_stopped(self, process: Runs) -> bool:
        """Whether it ends before the switch."""
        return self.name(process) in self.subject.stops

    @property
    def foreign(self) -> set[str]:
        """Names of what others run here that may be in the way."""
        processes: list[Runs] = [*self.state.engines.value_or(())]
        processes += self.state.listeners.value_or(())
        gpus = self.state.gpus.value_or(None)
        processes += [one for one in gpus.processes if one.computes] if gpus else []
        names = {self.name(process) for process in processes}
        names |= {one.name for one in self.state.containers.value_or(()) if not one.ours}
        return names - {"", paths.unit(self.subject.gang.name), self.container}

    @property
    def api_port(self) -> int:
        return serving.api(self.recipe).port


STOPPED = "it is stopped right before the switch, as asked for"


def stop_it(place: Place, process: Runs, pid: int) -> str:
    """The remedy for a process of others: by the deploy where its owner has a name."""
    name = place.name(process)
    if not name:
        return f"stop it: sudo kill {pid}" if pid else "find out whose it is, and stop it"
    return f"stop it, or let the deploy stop it right before the switch: --data stop_foreign={name}"


Results = Iterable[Finding]


@dataclass(frozen=True)
class Check:
    """A named check. ``source`` says why it is made; it is unknown where a part can't be read."""

    name: str
    source: str
    parts: tuple[str, ...]
    on_node: Callable[[Place], Results] | None = None
    on_gang: Callable[[Subject], Results] | None = None


def gib(size: float) -> str:
    """A size in bytes for people."""
    return f"{size / GIB:.1f} GiB"
