"""The main deploy: make a gang of nodes serve a recipe."""

from __future__ import annotations

from pyinfra import host, logger, state
from pyinfra.api import deploy

from pyinfra_vllm.deploys import progress
from pyinfra_vllm.deploys.wanted import wanted_release
from pyinfra_vllm.image_origin import builders
from pyinfra_vllm.operations import (
    agent,
    arguments,
    composed_model,
    gang,
    image,
    lock,
    members,
    rdma,
    ready,
    release,
    secret,
    secret_values,
    unit,
)


@deploy("Serve", data_defaults={"recipe": None, "vllm_gang": "main"})
def serve(recipe: str | None = None) -> None:
    """Make the gang of this host serve ``recipe`` (else ``--data recipe=…``).

    Host data: ``vllm_rank``, ``vllm_fabric_address``, ``vllm_interfaces``, ``vllm_hcas``,
    ``vllm_hf_cache``, ``vllm_gpus``, ``vllm_alert``, ``vllm_gang``. Raises Refusal, before anything
    is changed, when a node can't be reached or can't do what the recipe needs.
    """
    if host.name in builders({one.name: one.data.dict() for one in state.inventory}):
        logger.info(f"{host.print_prefix}is no node: it builds images for others")
        return
    watched = progress.watch(host)
    wanted = wanted_release(state, host, recipe or host.data.get("recipe"))
    new, build = wanted.release, wanted.build
    if host.name not in {node.name for node in new.content.gang.nodes}:
        logger.info(
            f"{host.print_prefix}left alone: the recipe needs {new.content.gang.size} nodes"
        )
        return
    watched.serves(new)

    lock.guard(
        state,
        host,
        new.content.gang.name,
        new.content.gang.head.name,
        f"serve {new.content.recipe_name}",
    )

    # install: nothing that serves is touched
    tag = new.content.recipe.docker_image
    if build:
        image.built(name=f"Image {tag}: built", release=new, build=build)
    image.loaded(name=f"Image {tag}: from archive or registry", release=new)
    image.offered(name=f"Image {tag}: offered", release=new, token=wanted.token)
    image.present(name=f"Image {tag}: on every node", release=new, token=wanted.token)
    image.withdrawn(name=f"Image {tag}: offer withdrawn", release=new)
    agent.installed(name="Agent: installed", release=new)
    release.staged(name="Release: files", release=new)
    if new.content.recipe.secrets:
        secret_values.placed(name="Secrets: values", release=new)
    members.known(name="Gang: members", release=new)
    secret.shared(name="Gang: secret", release=new)
    composed_model.linked(name="Composed model: links", release=new)
    unit.installed(name="Unit: installed and enabled", release=new)

    arguments.checked(name="Arguments: known to the image", release=new)

    # switch: all nodes or none
    gang.gate(name="Gang: whole", release=new)
    gang.started(name="Gang: started", release=new)
    ready.ready(name="Gang: ready", release=new, failures=wanted.failures)
    rdma.proven(name="Gang: speaks over RDMA", release=new, before=wanted.before)
    image.pruned(name="Image: unused ones removed", release=new)
    lock.released(name="Gang: lock given back")
