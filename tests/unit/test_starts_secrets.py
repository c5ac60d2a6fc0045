"""When a gang is started anew for a secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyinfra_vllm.agent.secret_values import digest
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.release import Release, release_of
from pyinfra_vllm.secret_values import Secrets
from pyinfra_vllm.starts import restart_reasons
from unit import gangs
from unit.test_starts import states

KEY = "VLLM_API_KEY"
SALT = "5a17"


def release(secrets: Secrets) -> Release:
    content = gangs.content_of("tiny-cpu-4x")
    recipe = content.recipe.model_copy(update={"secrets": (KEY,)})
    return release_of(replace(content, recipe=recipe, secrets=secrets))


def gang(
    wanted: Release, *, state: str = "running", value: str = "a", in_use: bool = True
) -> dict[str, NodeState]:
    """A gang that serves; on rank 2 the file has ``value``."""
    container = {
        "id": "1", "name": "vllm-main", "image": "i", "ours": True, "state": state,
        "exit_code": 0, "pid": 1,
    }  # fmt: skip
    found = {}
    for rank, (name, node) in enumerate(states(wanted).items()):
        kept = value if rank == 2 else "a"
        file = {"exists": True, "salt": SALT, "digests": {KEY: digest(SALT, kept)}}
        file["in_use"] = {KEY: in_use or rank != 2}
        parts: dict[str, Any] = {"containers": [container], "secrets": file}
        document = node.model_dump(by_alias=True)
        document |= {part: {"ok": True, "value": known} for part, known in parts.items()}
        found[name] = NodeState.model_validate(document)
    return found


def test_a_secret_that_the_engines_have_starts_nothing() -> None:
    wanted = release(Secrets({KEY: "a"}))
    assert restart_reasons(wanted, gang(wanted)) == {}


@pytest.mark.parametrize("case", [{"value": "b"}, {"in_use": False}])
def test_another_value_on_any_node_is_a_reason_for_the_head(case: dict[str, Any]) -> None:
    wanted = release(Secrets({KEY: "a"}))
    reasons = restart_reasons(wanted, gang(wanted, **case))
    assert reasons == {"spark-0": f"secret {KEY} has changed on spark-2"}


def test_a_gang_that_is_not_running_gets_the_new_value_anyway() -> None:
    wanted = release(Secrets({KEY: "a"}))
    assert restart_reasons(wanted, gang(wanted, state="exited", value="b")) == {}


def test_a_value_that_is_not_known_here_is_no_difference() -> None:
    wanted = release(Secrets({}, (KEY,)))
    assert restart_reasons(wanted, gang(wanted, value="b")) == {}
