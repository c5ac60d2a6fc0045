"""The main deploy, prepared by pyinfra and not run: what its operations say is the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyinfra_vllm.cli._session import session
from pyinfra_vllm.cluster import MAIN
from pyinfra_vllm.consequences import of
from pyinfra_vllm.outage import expected_outage, gang_state
from pyinfra_vllm.plan import Change, Found, GangPlan, Plan, together

if TYPE_CHECKING:
    from pyinfra.api import Host, State

    from pyinfra_vllm.facts.told import Told

_UNREACHED = "it can't be reached"


def plan(
    inventory: str, recipe: str, limit: Sequence[str] | None = None, password: str | None = None
) -> Plan:
    """What ``pyinfra INVENTORY deploys/recipe.py --data recipe=RECIPE`` would do now.

    UserError for an inventory that can't be read and a limit that nothing matches; what a
    deploy refuses is in the plan.
    """
    with session(inventory, limit, {"recipe": recipe}, password) as (state, notes):
        from pyinfra_vllm.facts import told

        listener = told.listen(state)
        gangs = [of_gang(state, listener, name, hosts) for name, hosts in by_gang(state).items()]
        lost = {
            host.name: notes.about(host.name) or _UNREACHED
            for host in state.inventory
            if host in state.failed_hosts
        }
    return Plan(
        schema=1,
        inventory=inventory,
        recipe=recipe,
        limit=tuple(word for several in limit or () for word in several.split(",") if word),
        gangs=tuple(gang for gang in gangs if gang is not None),
        unknown=lost,
        notes=tuple(dict.fromkeys(notes.lines)),
    )


def by_gang(state: State) -> dict[str, list[Host]]:
    """The hosts that can be asked, by gang, in inventory order."""
    found: dict[str, list[Host]] = {}
    for host in state.inventory:
        if host in state.active_hosts:
            found.setdefault(str(host.data.get("vllm_gang", MAIN)), []).append(host)
    return found


def of_gang(
    state: State, listener: Told, name: str, hosts: list[Host], recipe: str | None = None
) -> GangPlan | None:
    """The plan of one gang for its hosts, None where none of them is a node of the recipe.

    ``recipe`` None: the one that the hosts' data names.
    """
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra.context import ctx_host

    from pyinfra_vllm.deploys import serve

    changes: tuple[Change, ...] = ()
    about, error = None, ""
    try:
        for host in hosts:
            with ctx_host.use(host):
                serve(recipe=recipe)
        about = _about(state, name, hosts)
        changes = together(change for host in hosts for change in _changes(state, listener, host))
    except PyinfraError as refusal:
        error = str(refusal)
    if not error and not any(state.ops[host] for host in hosts):
        return None
    findings = tuple(
        Found(status=f.status, check=f.check, node=f.node, sentence=f.sentence)
        for f in listener.findings.get(name, [])
    )
    about = about or _refused(state, name, hosts)
    nodes = tuple(host.name for host in hosts)
    return about.model_copy(
        update={"nodes": nodes, "changes": changes, "error": error, "findings": findings}
    )


def _refused(state: State, name: str, hosts: list[Host]) -> GangPlan:
    """What is known of a gang whose release isn't: how it is, when its head says so."""
    from pyinfra_vllm.agent import paths
    from pyinfra_vllm.facts import survey
    from pyinfra_vllm.node import NodeState, Query
    from pyinfra_vllm.starts import wish

    heads = [host for host in hosts if host.data.get("vllm_rank") == 0]
    query = Query(gang=name, files=(paths.wanted(name),))
    for head in survey.each_state(state, heads, lambda _: query).values():
        if isinstance(head, NodeState):
            wanted = wish(name, head).release
            return GangPlan(gang=name, wanted=wanted, state=gang_state(head))
    return GangPlan(gang=name)


def _about(state: State, name: str, hosts: list[Host]) -> GangPlan:
    """What is known of the gang and its release."""
    from pyinfra_vllm.deploys import wanted
    from pyinfra_vllm.starts import wish

    known = wanted.computed(state, name)
    if known is None:
        return GangPlan(gang=name)
    states = wanted.states_of(state, known)
    content = known.release.content
    head = states.get(content.gang.head.name)
    return GangPlan(
        gang=name,
        recipe=content.recipe_name,
        release=known.release.digest,
        wanted=wish(known.release.content.gang.name, head).release if head else None,
        state=gang_state(head) if head else "",
        outage=expected_outage(head, known.release.digest) if head else None,
    )


def _changes(state: State, listener: Told, host: Host) -> Iterator[Change]:
    """What the operations of a host would do, each carried through to its end and not run."""
    from pyinfra.context import ctx_host

    for data in state.ops[host].values():
        with ctx_host.use(host):
            commands = sum(1 for _ in data.command_generator())
        key, lines = listener.taken()
        if commands:
            yield Change(
                operation=str(data.global_arguments.get("name") or key),
                key=key,
                consequence=of(key),
                nodes=(host.name,),
                lines=lines,
            )
