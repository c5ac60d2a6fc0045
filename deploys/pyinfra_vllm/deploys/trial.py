"""Deploy: try a release with one's own command, and go back."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyinfra import host, logger, state
from pyinfra.api import Host, State, deploy

from pyinfra_vllm import controller, goal, going_back
from pyinfra_vllm.deploys import data
from pyinfra_vllm.deploys.rollback import gang_here
from pyinfra_vllm.deploys.staging import stage, wanted_here
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.operations import gang, lock
from pyinfra_vllm.operations.trial import Plan, carried_out

LEASE = 60
"""Seconds without a sign of the controller after which the head goes back by itself."""


@deploy("Trial", data_defaults={"recipe": None, "vllm_gang": "main"})
def trial(recipe: str | None = None, command: str | None = None) -> None:
    """Serve ``recipe`` while ``command`` runs on the controller, and then what served before.

    ``recipe`` (else ``--data recipe=…``), ``command`` (else ``--data command='…'``): what is
    tried, and with what. ``--data lease=SECONDS``: how long the head waits for a controller
    that is gone. Output and result are kept in ``trials/`` of the working directory. Raises
    Refusal, before anything is changed, when there is nothing to go back to.
    """
    data.refuse_misspelt(host)
    asked = command or data.text(host, "command")
    if not asked:
        raise Refusal("which command is to run? say it: --data command='…', or trial(command=…)")
    wanted = wanted_here(recipe)
    if wanted is None:
        return
    new = wanted.release
    if wanted.moves:
        raise Refusal(f"{'; '.join(wanted.moves)}: run deploys/recipe.py first, then try")
    to_try = goal.of_release(new, data.seconds(host, "trial_seconds"))
    back = _served_now(state, host, to_try)
    lease = data.seconds(host, "lease") or LEASE
    plan = Plan(to_try, back, asked, _folder(to_try), lease)

    lock.guard(state, host, to_try.gang, to_try.nodes[0], f"trial of {to_try.recipe}")
    stage(wanted)
    gang.gate(name="Gang: whole", release=new)
    gang.joined(name="Gang: units run", release=new)
    if back is not None:
        order = to_try.order("trial", controller.about(), lease)
        gang.started(name="Gang: started for the trial", release=new, order=order)
    carried_out(name="Trial: carried out", plan=plan, failures=wanted.failures)
    lock.released(name="Gang: lock given back")


def _served_now(state: State, host: Host, to_try: Goal) -> Goal | None:
    """What to go back to; None when what is tried is what serves."""
    whole, states = gang_here(state, to_try.gang, with_images=False)
    head = states.get(whole.head.name)
    try:
        if head is not None and going_back.is_served(to_try, head):
            logger.info(f"{host.print_prefix}{to_try.release[:12]} serves: nothing is switched")
            return None
        served = going_back.serving(whole, states)
    except UserError as error:
        raise Refusal(f"a trial needs a release to go back to: {error}") from None
    if served.release == to_try.release:
        raise Refusal(f"{to_try.release[:12]} is wanted and doesn't serve: see pyinfra-vllm status")
    return served


def _folder(to_try: Goal) -> Path:
    """Where the result goes. Refusal when nothing can be kept there."""
    root = Path.cwd() / "trials"
    if not os.access(root if root.exists() else Path.cwd(), os.W_OK):
        raise Refusal(f"{root}: can't be written, and a trial keeps its result there")
    at = time.strftime("%Y%m%d-%H%M%S")
    return root / f"{at}-{to_try.recipe}-{to_try.release[:12]}"
