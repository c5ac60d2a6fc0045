"""Checks of the gang as a whole: what must be equal on all its nodes, and who may ask it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pyinfra_vllm import flags, model
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.preflight.finding import Place, Results, Subject, fail, ok, warn

_OPEN = (None, "", "0.0.0.0", "::")


def same_revision(subject: Subject) -> Results:
    """All ranks load the same weights."""
    for repo, pin in model.repos(subject.recipe):
        found = {}
        for place in subject.places:
            snapshot = place.state.snapshot(repo, pin)
            found[place.node.name] = str(snapshot.revision) if snapshot else ""
        if len(set(found.values())) > 1:
            lines = [f"  {name}: {commit}" for name, commit in found.items()]
            yield fail("\n".join([f"{_DIFFERENT.format(repo)}:", *lines]))
        else:
            yield ok(f"{repo} is the same on all nodes")


_DIFFERENT = "{}: the nodes have different revisions; fetch the same one, or pin it"


def revisions(subject: Subject) -> dict[str, str]:
    """Commit of every repository of the model. UserError: it is missing, or differs."""
    commits = {}
    for repo, pin in model.repos(subject.recipe):
        known = [place.state.snapshot(repo, pin) for place in subject.places]
        found = {str(snapshot.revision) for snapshot in known if snapshot and snapshot.revision}
        if not found:
            raise UserError(f"{repo}: no node has it in its vllm_hf_cache")
        if len(found) > 1:
            raise UserError(f"{_DIFFERENT.format(repo)}: {', '.join(sorted(found))}")
        commits[repo] = found.pop()
    return commits


def same_system(subject: Subject) -> Results:
    """Ranks with different kernels, drivers or dockers fail in ways that look like the network."""
    yield from _odd_ones(subject, "kernel", lambda place: place.state.system.required.kernel)
    yield from _odd_ones(subject, "docker", lambda place: place.state.docker.required.version)
    if any(place.node.gpus for place in subject.places):
        yield from _odd_ones(subject, "driver", _driver)


def _driver(place: Place) -> str:
    gpus = place.state.gpus.value_or(None)
    return str(gpus.driver) if gpus else "unknown"


def same_fabric(subject: Subject) -> Results:
    """Ports of different speed or MTU run at that of the slowest, or drop what is too large."""
    if not any(place.node.hcas for place in subject.places):
        return
    yield from _odd_ones(subject, "speed of the RDMA ports", _rates)
    yield from _odd_ones(subject, "MTU of the fabric's interfaces", _mtus)


def _rates(place: Place) -> str:
    ports = place.state.rdma.required.ports
    rates = [f"{port.rate or 0:g}" for port in ports if port.hca in place.node.hcas]
    return ", ".join(rates) + " Gb/s"


def _mtus(place: Place) -> str:
    links = place.state.interfaces.required
    return ", ".join(str(link.mtu) for link in links if link.name in place.node.interfaces)


def _odd_ones(subject: Subject, what: str, value_of: Callable[[Place], str]) -> Results:
    values = {place.node.name: value_of(place) for place in subject.places}
    usual = Counter(values.values()).most_common(1)[0][0]
    for name, value in values.items():
        if value != usual:
            others = ", ".join(other for other, found in values.items() if found == usual)
            yield warn(f"{what} is {value}", f"{usual} on {others}", "make them equal").at(name)
    if len(set(values.values())) == 1:
        yield ok(f"{what} is {usual} on all nodes")


def api_key(subject: Subject) -> Results:
    """An API that listens everywhere serves everyone who reaches the node."""
    recipe = subject.recipe
    host = flags.value_of(recipe.args, "--host")
    if "VLLM_API_KEY" in recipe.secrets or host not in _OPEN:
        yield ok("with a key" if "VLLM_API_KEY" in recipe.secrets else f"only on {host}")
    else:
        yield warn(
            "the API listens on 0.0.0.0 and asks for no key",
            "whoever reaches the head may use it",
            "give the recipe --host with an address of your own network, "
            'or secrets = ["VLLM_API_KEY"]',
        )
