"""Operations: a gang serves again what is on its nodes already."""

from __future__ import annotations

from pyinfra import host, state
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import going_back
from pyinfra_vllm.agent import paths
from pyinfra_vllm.facts import survey
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations.common import Commands, called, change, explained, place, show
from pyinfra_vllm.operations.gang import asking
from pyinfra_vllm.operations.lock import changing, confirm
from pyinfra_vllm.operations.watching import Watch
from pyinfra_vllm.starts import Order, next_wish, wish


@operation()
@changing
def asked(goal: Goal, order: Order) -> Commands:
    """The head wants this release: the same rename as any switch.

    + goal: a release that is on all nodes
    + order: how it is asked for
    """
    unit = paths.unit(goal.gang)
    here = _look(goal)
    if here.unit.required.active in ("inactive", "failed"):
        show(f"Will start {unit}")
        yield from change(
            StringCommand(f"systemctl reset-failed {unit} 2>/dev/null; systemctl start {unit}")
        )
    if host.name == goal.nodes[0] and wish(goal.gang, here).release != goal.release:
        confirm(host)
        show(f"Will ask for release {goal.release[:12]}")
        text = next_wish(goal.gang, goal.release, here, order)
        yield from change(place(asking(goal.gang, text, order)))


@operation()
@explained
def ready(goal: Goal) -> Commands:
    """The head has answered a completion with this release. Only watches.

    + goal: what the head was asked for
    """
    if host.name == goal.nodes[0] and not going_back.is_served(goal, _look(goal)):
        yield from change(called(_wait, goal))


def _wait(state: State, host: Host, goal: Goal) -> bool:
    return Watch(state, host, goal, {}).wait() in ("serving", "paused")


def _look(goal: Goal) -> NodeState:
    return survey.node_state(state, host, lambda _: going_back.query(goal.gang))
