"""What a run says in its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyinfra import host
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.context import ctx_config, ctx_host, ctx_state

from pyinfra_vllm.deploys import progress
from pyinfra_vllm.operations import agent, composed_model, release
from pyinfra_vllm.release import Release


def run(wanted: Release, *operations: Any) -> None:
    """As a deploy does it, with the summary in the end."""
    state = State(Inventory((["@local"], {})), Config(DIFF=True))
    with ctx_state.use(state), ctx_config.use(state.config):
        connect_all(state)
        with ctx_host.use(state.inventory.get_host("@local")):
            progress.watch(host).serves(wanted, state.inventory)  # host: gone once operations run
        for operation in operations:
            add_op(state, operation, release=wanted, name=operation.__name__)
        run_ops(state)
        disconnect_all(state)


def test_the_summary_says_what_the_run_has_seen_of_the_head(
    local_release: Release, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="pyinfra"):
        run(local_release, agent.installed, release.staged, composed_model.linked)
        assert ": 3 links differ" in caplog.text
        Path(str(local_release.composed_directory), "config.json").unlink()
        caplog.clear()
        run(local_release, release.staged, composed_model.linked, release.named)
    assert ": 1 link differs" in caplog.text
    name = f"gang main: tiny-cpu-1x, release {local_release.digest[:12]}"
    summary = caplog.text.partition("Summary")[2]
    assert f"{name}: not serving: its unit is inactive on the head" in summary
    assert "http" not in summary
