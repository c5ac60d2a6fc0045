"""What is said with ``--data`` is looked at by every deploy, before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.context import ctx_config, ctx_state

from fake_dockerd import dockerd
from pyinfra_vllm import deploys
from pyinfra_vllm.facts.refusal import Refusal

HOST = {"vllm_rank": 0, "vllm_hf_cache": "/hub"}


def refused(name: str, data: dict[str, Any], node: dict[str, Any] | None = None) -> str:
    """What a deploy of ours answers, and that it has planned nothing."""
    inventory = Inventory(([("@local", {**HOST, **(node or {})})], {}), override_data=data)
    state = State(inventory, Config())
    with ctx_state.use(state), ctx_config.use(state.config):
        connect_all(state)
        with pytest.raises(Refusal) as found:
            add_deploy(state, getattr(deploys, name))
    assert not state.op_meta
    return str(found.value)


@pytest.mark.parametrize("name", deploys.__all__)
def test_a_misspelt_name_is_refused_by_every_deploy(name: str) -> None:
    said = refused(name, {"recipe": "tiny-cpu-1x", "stage_onyl": True, "version": 3})
    assert said == "nothing was changed:\n--data stage_onyl: unknown; did you mean stage_only?"


@pytest.mark.parametrize("name", [one for one in deploys.__all__ if one != "teardown"])
def test_a_gang_that_the_inventory_lacks_is_refused_by_every_deploy(name: str) -> None:
    said = refused(name, {"recipe": "tiny-cpu-1x", "command": "true", "gang": "mian"})
    assert said == "gang=mian: the inventory has none; did you mean main?"


def test_a_name_that_the_inventory_has_data_for_is_meant() -> None:
    said = refused("rollback", {"image": "x", "gang": "mian"}, {"image": "y"})
    assert said == "gang=mian: the inventory has none; did you mean main?"


@pytest.mark.usefixtures("node_root")
def test_a_gang_that_neither_inventory_nor_node_has_can_t_be_taken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_unit = "#!/bin/sh\necho LoadState=not-found; echo ActiveState=inactive\n"
    (tmp_path / "bin" / "systemctl").write_text(no_unit)
    with dockerd(tmp_path / "docker.sock", {"/containers/json": [], "/images/json": []}) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        said = refused("teardown", {"gang": "mian"})
    assert said == "gang=mian: neither the inventory nor a node has it; did you mean main?"
