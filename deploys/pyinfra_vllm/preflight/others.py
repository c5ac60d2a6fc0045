"""Checks of what else is on a node: gangs that it was in before, engines of others."""

from __future__ import annotations

from pyinfra_vllm.agent import paths
from pyinfra_vllm.preflight.finding import Place, Results, Subject, fail, ok, warn


def other_gangs(place: Place) -> Results:
    """A node is in one gang: the unit of another one would start a second engine."""
    found, name = place.state.leftovers.required, place.subject.gang.name
    others = [
        gang for gang in found.gangs if gang != name and paths.unit(gang) in found.units
    ]  # fmt: skip
    if not others:
        yield ok("it is of no other gang")
    for gang in others:
        yield fail(
            f"the node is still of gang {gang}", "a node is in one gang",
            f"take that one off it: pyinfra INVENTORY deploys/teardown.py --data gang={gang}",
        )  # fmt: skip


def stop_foreign(subject: Subject) -> Results:
    """What is to be stopped has a name that something foreign on a node has."""
    there = {name for place in subject.places for name in place.foreign}
    missing = [name for name in subject.stops if name not in there]
    if there and missing:
        yield (fail if subject.alone else warn)(
            f"stop_foreign={','.join(missing)}: nothing of others has that name",
            "", f"what is in the way: {', '.join(sorted(there))}",
        )  # fmt: skip
    elif subject.stops:
        yield ok("nothing else is stopped")
