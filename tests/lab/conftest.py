"""Labs for tests: the common one, which tests must leave as they found it, and throw-away ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import testinfra
from testinfra.host import Host

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.lab import commands, machine, ssh, state
from pyinfra_vllm.lab.layout import DEFAULT_NAME, Layout, Machine

from .stub.gang import UNIT, Gang
from .traces import traces


@dataclass(frozen=True)
class Lab:
    """A running lab. ``ask``: output of a shell command on the node of that rank."""

    layout: Layout

    @property
    def name(self) -> str:
        return self.layout.name

    @property
    def machines(self) -> tuple[Machine, ...]:
        return self.layout.machines

    def ask(self, rank: int, command: str) -> str:
        return ssh.ask(self.layout, self.machines[rank], command).strip()

    def host(self, rank: int) -> Host:
        """The node as testinfra sees it."""
        return testinfra.get_host(
            f"ssh://{self.machines[rank].name}", ssh_config=str(self.layout.ssh_config)
        )


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The lab that PYINFRA_VLLM_LAB names; taken down in the end only if it was brought up here."""
    name = os.environ.get("PYINFRA_VLLM_LAB", DEFAULT_NAME)
    require_root()
    found = state.load(name)
    was_running = found is not None and all(machine.is_on(found, node) for node in found.machines)
    layout = bring_up(name)
    yield Lab(layout)
    if not was_running:
        commands.down(name)


@pytest.fixture(scope="session")
def own() -> Iterator[Lab]:
    """A lab that tests may break; its end leaves nothing behind."""
    require_root()
    layout = bring_up("tests1")
    yield Lab(layout)
    commands.down(layout.name)
    assert not any(traces(layout.name).values()), traces(layout.name)


@pytest.fixture(scope="session")
def gang() -> Iterator[Gang]:
    """A gang with the stub engine on a lab of its own, with waits ten times shorter.

    Tests may break it; each starts from whatever the one before has left of it.
    """
    require_root()
    name = os.environ.get("PYINFRA_VLLM_STUB_LAB", "stub")
    found = state.load(name)
    was_running = found is not None and all(machine.is_on(found, node) for node in found.machines)
    gang = Gang(bring_up(name), 0.1)
    gang.set_pace()
    gang.deploy("stub-4x")
    yield gang
    if was_running:
        gang.each(f"systemctl stop {UNIT}")
    else:
        commands.down(name)


def require_root() -> None:
    """Tests of the lab skip without root, but not in CI, where a skipped test is a hole."""
    if os.geteuid() != 0:
        reason = "the lab starts machines and needs root"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)


def bring_up(name: str, with_images: bool = True) -> Layout:
    try:
        return commands.up(name, with_images)
    except UserError as error:
        pytest.fail(f"lab {name} doesn't come up: {error}")
