"""Operation: run somebody's own command against a release that is only lent, and go back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
from pyinfra import host, logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import controller
from pyinfra_vllm.agent import paths
from pyinfra_vllm.goal import Goal
from pyinfra_vllm.operations.command import Command, Interrupts
from pyinfra_vllm.operations.common import Commands, called, change, explained, run
from pyinfra_vllm.operations.watching import Watch, api_url

_TIMES = 6
"""So often the lease is renewed before it would end."""


@dataclass(frozen=True)
class Plan:
    """``trial``: what is tried; ``back``: what is served afterwards, None: nothing is switched.

    ``folder``: where output and result are kept, on the controller. ``lease``: seconds.
    """

    trial: Goal
    back: Goal | None
    command: str
    folder: Path
    lease: int


@operation(is_idempotent=False)
@explained
def carried_out(plan: Plan, failures: Mapping[str, float] | None = None) -> Commands:
    """The command has run on the controller, and the gang serves what it served before.

    It gets ``PYINFRA_VLLM_URL``, ``_MODEL``, ``_RELEASE``, ``_RECIPE`` and ``_GANG``. Whatever
    happens, ^C too, the gang goes back; of a controller that is gone the head hears no more,
    and goes back when the lease is over. Fails when the command does.

    + plan: what is tried, and how
    + failures: node -> when its engine had died before this run
    """
    if host.name == plan.trial.nodes[0]:
        yield from change(called(_carry_out, plan, failures or {}))


def _carry_out(state: State, host: Host, plan: Plan, failures: Mapping[str, float]) -> bool:
    with Interrupts() as interrupts:
        renewal = gevent.spawn(_renew, host, plan)
        try:
            watch = Watch(state, host, plan.trial, failures, interrupts.happened)
            outcome = watch.wait()
            command = Command(plan.command, _environment(host, plan.trial), plan.folder)
            code = command.run(host, interrupts) if outcome == "serving" else None
        finally:
            renewal.kill()
            back = _go_back(host, plan)
        if code is not None:
            _keep(host, plan, command.result(code), back)
        is_back = plan.back is None or _serves_again(state, host, plan)
        return code == 0 and back and is_back


def _renew(host: Host, plan: Plan) -> None:
    if plan.back is None:
        return
    command = StringCommand("touch", paths.lease(plan.trial.gang))
    while True:
        try:
            run(host, host, command)
        except Exception as error:  # each connector has its own
            logger.warning(f"{host.print_prefix}the lease is not renewed: {error}")
        gevent.sleep(plan.lease / _TIMES)


def _go_back(host: Host, plan: Plan) -> bool:
    """Whether it was this run that went back: else the release was taken away meanwhile."""
    if plan.back is None:
        return True
    words = ["python3", paths.AGENT, "back", plan.trial.gang, plan.trial.release]
    words += ["--why", "the trial is over", "--who", controller.user()]
    ok, output = run(host, host, StringCommand(shlex.join(words)))
    answer = json.loads(output.stdout.strip() or "{}") if ok else {}
    if not ok:
        logger.error(
            f"{host.print_prefix}the head can't be asked to go back: it does so by itself, "
            f"{plan.lease} s after it has heard of this run last"
        )
    return bool(answer.get("back"))


def _serves_again(state: State, host: Host, plan: Plan) -> bool:
    assert plan.back is not None
    logger.info(f"{host.print_prefix}goes back to {plan.back.release[:12]}")
    return Watch(state, host, plan.back, {}).wait() in ("serving", "paused")


def _environment(host: Host, goal: Goal) -> dict[str, str]:
    return {
        "PYINFRA_VLLM_URL": api_url(host, goal),
        "PYINFRA_VLLM_MODEL": goal.api.model,
        "PYINFRA_VLLM_RELEASE": goal.release,
        "PYINFRA_VLLM_RECIPE": goal.recipe,
        "PYINFRA_VLLM_GANG": goal.gang,
    }


def _keep(host: Host, plan: Plan, result: dict[str, Any], whole: bool) -> None:
    """``whole``: the release served until the command had ended."""
    about = {
        "schema": 1,
        "gang": plan.trial.gang,
        "recipe": plan.trial.recipe,
        "release": plan.trial.release,
        "whole": whole,
        "by": controller.about(),
        **result,
    }
    (plan.folder / "result.json").write_text(json.dumps(about, indent=1) + "\n")
    say = logger.info if result["code"] == 0 else logger.error
    say(
        f"{host.print_prefix}the command ended with {result['code']} after "
        f"{result['seconds']:.0f} s; output and result are in {plan.folder}"
    )
    if not whole:
        logger.error(
            f"{host.print_prefix}the gang had gone back before the command ended: what it "
            f"measured is not {plan.trial.release[:12]} alone"
        )
