"""The part of a deploy that touches nothing that serves: a whole release on every node."""

from __future__ import annotations

from pyinfra import host, logger, state

from pyinfra_vllm.deploys import data, progress
from pyinfra_vllm.deploys.wanted import Wanted, wanted_release
from pyinfra_vllm.facts.inventory import gang_of
from pyinfra_vllm.facts.inventory import members as members_of
from pyinfra_vllm.operations import (
    agent,
    arguments,
    composed_model,
    container,
    image,
    leftovers,
    members,
    release,
    secret,
    secret_values,
    unit,
)


def wanted_here(recipe: str | None) -> Wanted | None:
    """What the gang of this host is to serve; None, and said why, for a host that takes no part.

    Raises Refusal, before anything is changed, when a node can't do what the recipe needs.
    """
    if not data.concerns(host):
        return None
    if host.name in members_of(host).builders:
        logger.info(f"{host.print_prefix}is no node: it builds images for others")
        return None
    watched = progress.watch(host)
    wanted = wanted_release(state, host, recipe)
    if wanted is None:
        logger.info(f"{host.print_prefix}left alone: no recipe is said for gang {gang_of(host)}")
        return None
    gang = wanted.release.content.gang
    if host.name not in {node.name for node in gang.nodes}:
        logger.info(f"{host.print_prefix}left alone: the recipe needs {gang.size} nodes")
        return None
    watched.serves(wanted.release, host.state.inventory)
    return wanted


def stage(wanted: Wanted, in_window: bool = False) -> None:
    """Everything that the release needs, beside what serves.

    ``in_window``: a build window is opened before, where one is needed.
    """
    new = wanted.release
    if wanted.images:
        _images(wanted, in_window)
    agent.installed(name="Agent: installed", release=new)
    release.staged(name="Release: files", release=new)
    release.named(name="Release: current", release=new)
    if new.content.recipe.secrets:
        secret_values.placed(name="Secrets: values", release=new)
    members.known(name="Gang: members", release=new)
    secret.shared(name="Gang: secret", release=new)
    composed_model.linked(name="Composed model: links", release=new)
    unit.installed(name="Unit: installed and enabled", release=new)
    container.unrestarted(name="Container: not restarted by docker", release=new)
    leftovers.removed(name="Leftovers: removed", release=new)

    arguments.checked(name="Arguments: known to the image", release=new)


def _images(wanted: Wanted, in_window: bool) -> None:
    new, build = wanted.release, wanted.build
    tag = new.content.recipe.docker_image
    if build:
        image.built(name=f"Image {tag}: built", release=new, build=build, in_window=in_window)
    image.loaded(name=f"Image {tag}: from archive or registry", release=new)
    image.offered(name=f"Image {tag}: offered", release=new, token=wanted.token)
    image.present(name=f"Image {tag}: on every node", release=new, token=wanted.token)
    image.withdrawn(name=f"Image {tag}: offer withdrawn", release=new)
