"""The main deploy: make a gang of nodes serve a recipe."""

from __future__ import annotations

from pyinfra import host, logger, state
from pyinfra.api import deploy

from pyinfra_vllm import controller, goal
from pyinfra_vllm.deploys import data
from pyinfra_vllm.deploys.staging import stage, wanted_here
from pyinfra_vllm.operations import (
    foreign,
    gang,
    image,
    image_sender,
    lock,
    moving,
    rdma,
    ready,
    release,
    window,
)


@deploy("Serve", data_defaults={"recipe": None, "vllm_gang": "main"})
def serve(recipe: str | None = None) -> None:
    """Make the gang of this host serve ``recipe`` (else ``--data recipe=…``).

    ``--data stage_only=true`` lays the release on the nodes and leaves serving what serves;
    ``--data trial_seconds=…`` is allowed until the first completion, instead of the recipe's
    ``start_timeout``: the head then goes back by itself to the release before.

    Host data: ``vllm_rank``, ``vllm_fabric_address``, ``vllm_interfaces``, ``vllm_hcas``,
    ``vllm_hf_cache``, ``vllm_gpus``, ``vllm_alert``, ``vllm_gang``. Raises Refusal, before anything
    is changed, when a node can't be reached or can't do what the recipe needs.
    """
    wanted = wanted_here(recipe)
    if wanted is None:
        return
    new = wanted.release
    to_serve = goal.of_release(new, data.seconds(host, "trial_seconds"))

    lock.guard(
        state,
        host,
        new.content.gang.name,
        new.content.gang.head.name,
        f"serve {new.content.recipe_name}",
    )

    # install: nothing that serves is touched, but in a build window
    stage_only = data.flag(host, "stage_only")
    in_window = not stage_only and image_sender.origin_of(host).kind == "window"
    if in_window and wanted.build:
        window.opened(name="Build window: opened", release=new, build=wanted.build)
    stage(wanted, in_window)
    if stage_only:
        logger.info(f"{host.print_prefix}only staged: {new.digest[:12]}; nothing is switched")
        lock.released(name="Gang: lock given back")
        return

    # switch: all nodes or none; from then on the head decides
    gang.gate(name="Gang: whole", release=new)
    if wanted.stops:
        foreign.stopped(name="Foreign engines: stopped", release=new, names=wanted.stops)
    if wanted.moves:
        moving.head_stopped(name="Gang: old head stopped", release=new)
        moving.ranks_known(name="Gang: ranks known", release=new)
    gang.joined(name="Gang: units run", release=new)
    order = to_serve.order("deploy", controller.about())
    gang.started(name="Gang: started", release=new, order=order)
    if wanted.lent:
        gang.kept(name="Gang: lent release kept", release=new, order=order)
    if in_window or wanted.window:
        window.closed(name="Build window: closed", release=new)
    ready.ready(name="Gang: ready", release=new, goal=to_serve, failures=wanted.failures)
    if wanted.before:
        rdma.proven(name="Gang: speaks over RDMA", release=new, before=wanted.before)
    release.pruned(name="Release: old ones removed", release=new)
    image.pruned(name="Image: unused ones removed", release=new)
    lock.released(name="Gang: lock given back")
