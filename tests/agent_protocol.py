"""A world of one head and two workers that run the real protocol, for exhaustive search.

A step is anything that can happen next: a message arrives, an engine is gone, a rank looks
at its preconditions. A fault costs one of a budget. Steps in ``OPTIONAL`` (a node that was
switched off comes back) may also never happen. Workers are alike, so a state and its mirror
image are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

from pyinfra_vllm.agent import tether, tether_events
from pyinfra_vllm.agent.said import ABSENT, Said, Start
from pyinfra_vllm.agent.tether import Tether

OPTIONAL = ("boots", "resumes", "recovers", "is staged")


def _remembered(function: Callable[[Any], int]) -> Callable[[Any], int]:
    def remembered(value: Any) -> int:
        known: dict[str, Any] = value.__dict__
        if "hash" not in known:
            known["hash"] = function(value)
        return cast(int, known["hash"])

    return remembered


class Node(NamedTuple):
    """``engine``: number of the start it is of, 0 for none; ``releases``: what is staged."""

    agent: Tether | None
    is_on: bool = True
    hangs: bool = False
    engine: int = 0
    is_dying: bool = False
    is_whole: bool = True
    releases: str = "AB"


class Link(NamedTuple):
    """Ends that hold the connection ("hw", "h", "w", "") and what is on its way to each.

    ``told``: the end that let go has said so (a FIN); ``cut``: nothing passes any more.
    """

    ends: str = ""
    told: bool = False
    cut: bool = False
    to_head: tuple[Said, ...] = ()
    to_worker: tuple[Said, ...] = ()


class World(NamedTuple):
    """``previous``: what the head goes back to, "" when nothing is on trial."""

    nodes: tuple[Node, Node, Node]
    links: tuple[Link, Link]
    wish: str
    hold: str
    previous: str = ""


ENDING = Tether(9, (None, None, None), stage="ending")
"""Stands for every agent that ends: what it knew is forgotten with it."""
HANGING = Tether(9, (None, None, None), stage="running")
"""Stands for every agent that is stopped: it will be killed, whatever it knew."""

for _values in (Tether, Said):  # a search hashes the same values millions of times
    _values.__hash__ = _remembered(_values.__hash__)  # type: ignore[method-assign, assignment]

Step = tuple[str, World]
step = lru_cache(maxsize=None)(tether.step)


@cache
def says(agent: Tether, rank: int) -> Said:
    return replace(tether.says(agent, rank), text="", first=None)


def new(releases: str = "AB") -> World:
    """All nodes have just been switched on; ``releases`` is what one of the workers has."""
    nodes = (Node(None), Node(None), Node(None, releases=releases))
    world = World(nodes, (Link(), Link()), "A", "")
    for rank in range(3):
        world = _new_life(world, rank)
    return canonical(world)


def canonical(world: World) -> World:
    """The smaller of a state and its mirror image."""
    head, one, two = world.nodes
    if _key(one, world.links[0]) <= _key(two, world.links[1]):
        return world
    agent = head.agent
    if agent and agent.rank == 0:
        agent = replace(agent, heard=(None, agent.heard[2], agent.heard[1]))
    links = (world.links[1], world.links[0])
    return world._replace(nodes=(head._replace(agent=agent), two, one), links=links)


@cache
def _key(node: Node, link: Link) -> str:
    return repr((node, link))


def _set(world: World, rank: int, node: Node) -> World:
    nodes = list(world.nodes)
    nodes[rank] = node
    return world._replace(nodes=tuple(nodes))  # type: ignore[arg-type]


def _set_link(world: World, rank: int, link: Link) -> World:
    links = list(world.links)
    links[rank - 1] = link
    return world._replace(links=tuple(links))  # type: ignore[arg-type]


def _links_of(rank: int) -> tuple[int, ...]:
    return (1, 2) if rank == 0 else (rank,)


def _new_life(world: World, rank: int) -> World:
    """systemd starts the agent, which finds out whether an old engine is still there."""
    node = world.nodes[rank]
    if rank == 0:
        agent = tether.head(3, Start(_free_number(world), ""))
        agent, _ = step(agent, tether_events.Wish(world.wish, world.hold))
    else:
        agent = tether.worker(1)
    if not node.engine:
        agent, _ = step(agent, tether_events.Clean())
    node = node._replace(agent=agent, hangs=False, is_dying=bool(node.engine))
    return _set(world, rank, node)


def _free_number(world: World) -> int:
    """A number that no start has of which anything is left. Only equality counts."""
    used = {node.engine for node in world.nodes}
    for node in world.nodes:
        if node.agent and node.agent.start:
            used.add(node.agent.start.number)
    for link in world.links:
        used |= {said.start.number for said in link.to_head + link.to_worker if said.start}
    return next(number for number in range(1, 20) if number not in used)


def tell(world: World, rank: int, event: tether_events.Event) -> World:
    """Give the agent of ``rank`` an event, and carry out what follows."""
    node = world.nodes[rank]
    assert node.agent is not None
    agent, actions = step(node.agent, event)
    node = node._replace(agent=agent)
    for action in actions:
        if isinstance(action, tether_events.Run):
            node = node._replace(engine=action.start.number, is_dying=False)
    world = _set(world, rank, node)
    for other in _links_of(rank):
        world = _say(world, rank, other)
    return _end(world, rank) if agent.stage == "ending" else world


def _say(world: World, rank: int, other: int) -> World:
    """Put on its way what ``rank`` says, if that is new to the other end."""
    link = world.links[other - 1]
    sender = world.nodes[rank].agent
    receiver = world.nodes[other if rank == 0 else 0].agent
    if link.ends != "hw" or link.cut or sender is None or receiver in (None, HANGING):
        return world
    said = says(sender, other if rank == 0 else 0)
    queue = link.to_worker if rank == 0 else link.to_head
    last = queue[-1] if queue else receiver.heard[0 if rank == 0 else other]
    if said == last:
        return world
    queue = (*queue, said)
    link = link._replace(to_worker=queue) if rank == 0 else link._replace(to_head=queue)
    return _set_link(world, other, link)


def _end(world: World, rank: int) -> World:
    """The agent kills its engine, lets go of its connections and begins anew when all is gone."""
    for other in _links_of(rank):
        world = _let_go(world, rank, other, told=True)
    node = world.nodes[rank]
    if node.engine:
        return _set(world, rank, node._replace(agent=ENDING, is_dying=True))
    return _new_life(world, rank)


def _let_go(world: World, rank: int, other: int, told: bool) -> World:
    link = world.links[other - 1]
    mine = "h" if rank == 0 else "w"
    if mine not in link.ends:
        return world
    rest = link.ends.replace(mine, "")
    if not rest:
        return _set_link(world, other, Link())
    queues = {"to_worker": link.to_worker} if rank == 0 else {"to_head": link.to_head}
    return _set_link(world, other, Link(rest, told and not link.cut, link.cut, **queues))


def lose(world: World, rank: int, power: bool) -> World:
    """The agent dies: alone (systemd then kills the engine), or with its node."""
    for other in _links_of(rank):
        world = _let_go(world, rank, other, told=not power)
    node = world.nodes[rank]
    if power:
        return _set(world, rank, node._replace(agent=None, is_on=False, hangs=False, engine=0))
    return _new_life(world, rank)


def _lost(world: World, rank: int, other: int) -> World:
    """``rank`` gives up the connection of worker ``other``."""
    world = _let_go(world, rank, other, told=True)
    return tell(world, rank, tether_events.Lost(other if rank == 0 else 0, "late"))


class Rules(NamedTuple):
    """``beats``: whether an agent in this state beats and minds late beats.

    ``breaks``: agents may hang, and preconditions that held may break. ``tries``: a switch
    is a trial, and what a rank lacks of it is a part of the release, which nobody stages.
    """

    beats: Callable[[Tether], bool] = lambda agent: True
    breaks: bool = True
    tries: bool = False


def steps(world: World, rules: Rules) -> Iterator[Step]:
    """Everything that can happen next without a fault: what, and the world after it."""
    for rank in range(3):
        yield from _node_steps(world, rank, rules)
    if world.previous and (world.nodes[0].agent and _is_absent(world.nodes[0].agent)):
        yield "goes back", _back(world)
    for rank in (1, 2):
        yield from _link_steps(world, rank, rules)
    if world.hold:
        yield "resumes", world._replace(hold="")
    agent = world.nodes[0].agent
    is_told = agent is None or (agent.wanted, agent.hold) == (world.wish, world.hold)
    if agent and not is_told and not world.nodes[0].hangs and agent.stage != "ending":
        yield "polls", tell(world, 0, tether_events.Wish(world.wish, world.hold))


def _is_absent(head: Tether) -> bool:
    said = [word for word in head.heard if word and word.release == head.wanted]
    return head.absent or any(word.word == "lack" and word.code == ABSENT for word in said)


def _back(world: World) -> World:
    """The head wants again what served before; it has its own wish at once."""
    world = world._replace(wish=world.previous, previous="")
    return tell(world, 0, tether_events.Wish(world.wish, world.hold))


def _node_steps(world: World, rank: int, rules: Rules) -> Iterator[Step]:
    node = world.nodes[rank]
    if not node.is_on:
        yield f"{rank} boots", _new_life(_set(world, rank, node._replace(is_on=True)), rank)
        return
    if node.is_dying and node.engine:
        gone = _set(world, rank, node._replace(engine=0, is_dying=False))
        ending = node.agent and node.agent.stage == "ending"
        if not node.hangs:
            gone = _new_life(gone, rank) if ending else tell(gone, rank, tether_events.Clean())
        yield f"{rank} engine gone", gone
    if node.hangs:
        yield f"{rank} watchdog", lose(world, rank, power=False)
        return
    if not node.is_whole:
        yield f"{rank} recovers", _set(world, rank, node._replace(is_whole=True))
    agent = node.agent
    if agent and agent.stage == "assembling" and agent.wanted:
        if agent.wanted not in node.releases and not rules.tries:
            releases = node.releases + agent.wanted
            yield f"{rank} is staged", _set(world, rank, node._replace(releases=releases))
        if node.is_whole and agent.wanted in node.releases:
            if not agent.ready:
                yield f"{rank} ready", tell(world, rank, tether_events.Ready(agent.wanted, 3))
        elif agent.ready or not agent.lacks:
            absent = rules.tries and agent.wanted not in node.releases
            lacking = tether_events.Lacking(agent.wanted, "x", absent)
            yield f"{rank} lacks", tell(world, rank, lacking)


def _link_steps(world: World, rank: int, rules: Rules) -> Iterator[Step]:
    link, head, node = world.links[rank - 1], world.nodes[0], world.nodes[rank]
    listens = head.agent is not None and not head.hangs and head.agent.stage != "ending"
    if _dials(node) and "w" not in link.ends and listens:
        yield f"{rank} dials", _join(world, rank)
    for me, mine, other, queue in ((0, "h", node, link.to_head), (rank, "w", head, link.to_worker)):
        here = world.nodes[me]
        if mine not in link.ends or here.hangs or here.agent is None:
            continue
        if queue:
            yield f"{me} hears {rank}", _deliver(world, me, rank)
        elif link.told and len(link.ends) == 1:
            yield f"{me} sees {rank} go", _lost(world, me, rank)
        elif (link.cut or len(link.ends) == 1 or other.hangs) and rules.beats(here.agent):
            yield f"{me} misses beats of {rank}", _lost(world, me, rank)


def _dials(node: Node) -> bool:
    return node.agent is not None and node.agent.stage == "assembling" and not node.hangs


def _join(world: World, rank: int) -> World:
    world = _set_link(world, rank, Link("hw"))
    world = tell(world, 0, tether_events.Joined(rank))
    if world.links[rank - 1].ends != "hw":
        return world
    return tell(world, rank, tether_events.Joined(0))


def _deliver(world: World, me: int, rank: int) -> World:
    link = world.links[rank - 1]
    if me == 0:
        said, link = link.to_head[0], link._replace(to_head=link.to_head[1:])
        return tell(_set_link(world, rank, link), 0, tether_events.Heard(rank, said))
    said, link = link.to_worker[0], link._replace(to_worker=link.to_worker[1:])
    return tell(_set_link(world, rank, link), rank, tether_events.Heard(0, said))


def faults(world: World, rules: Rules) -> Iterator[Step]:
    """Every fault that can happen next, and the world after it."""
    for rank in range(3):
        node = world.nodes[rank]
        if not node.is_on:
            continue
        yield f"{rank} power cut", lose(world, rank, power=True)
        yield f"{rank} agent killed", lose(world, rank, power=False)
        if rules.breaks and not node.hangs and node.agent is not ENDING:
            yield f"{rank} agent hangs", _hang(world, rank)
        if rules.breaks and node.is_whole and _dials(node):
            yield f"{rank} breaks", _set(world, rank, node._replace(is_whole=False))
        if node.engine and not node.is_dying and not node.hangs and node.agent:
            dead = _set(world, rank, node._replace(engine=0))
            yield f"{rank} engine dies", tell(dead, rank, tether_events.Over(1, ""))
    for rank in (1, 2):
        yield from _link_faults(world, rank)
    if world.wish == "A":
        yield "switch", world._replace(wish="B", previous="A" if rules.tries else "")
    if world.previous and world.nodes[0].agent and not world.nodes[0].hangs:
        yield "time is up", _back(world)
    if not world.hold:
        yield "pause", world._replace(hold="paused")


def _hang(world: World, rank: int) -> World:
    for other in _links_of(rank):
        link = world.links[other - 1]
        gone: tuple[Said, ...] = ()
        link = link._replace(to_head=gone) if rank == 0 else link._replace(to_worker=gone)
        world = _set_link(world, other, link)
    return _set(world, rank, world.nodes[rank]._replace(agent=HANGING, hangs=True))


def _link_faults(world: World, rank: int) -> Iterator[Step]:
    link = world.links[rank - 1]
    if link.ends != "hw" or link.cut:
        return
    yield f"{rank} link cut", _set_link(world, rank, Link("hw", cut=True))
    for me in (0, rank):
        if not world.nodes[me].hangs:
            yield f"{me} late beat of {rank}", _lost(world, me, rank)
    if len(link.to_head) > 1:
        yield (
            f"{rank} lost to head",
            _set_link(world, rank, link._replace(to_head=link.to_head[1:])),
        )
    if len(link.to_worker) > 1:
        rest = link._replace(to_worker=link.to_worker[1:])
        yield f"{rank} lost to worker", _set_link(world, rank, rest)
