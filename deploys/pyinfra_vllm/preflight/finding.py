"""What a check finds, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pyinfra_vllm import serving
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


@dataclass(frozen=True)
class Subject:
    """A gang before a deploy. ``states`` has only the nodes that answered."""

    recipe: Recipe
    gang: Gang
    build: Build | None
    states: Mapping[str, NodeState]

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

    @property
    def api_port(self) -> int:
        return serving.api(self.recipe).port


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
