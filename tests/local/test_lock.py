"""Operations that change a gang take its lock by themselves, when they change something."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyinfra import host
from pyinfra.api import Config, FunctionCommand, Host, Inventory, State, StringCommand, operation
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.context import ctx_config, ctx_state

from pyinfra_vllm.agent import paths
from pyinfra_vllm.gang_lock import Lock
from pyinfra_vllm.operations import lock
from pyinfra_vllm.operations.common import Commands

OTHER = Lock("main", "serve r37", "alice@laptop:1")
Run = Callable[..., dict[str, bool]]


@operation()
@lock.changing
def file_there(path: Path) -> Commands:
    if not path.exists():
        yield StringCommand("touch", str(path))


@operation()
@lock.changing
def locked_out(path: Path) -> Commands:
    """Somebody breaks the lock while this one works."""
    if path.exists():
        return

    def broken(state: State, host: Host) -> bool:
        ask(OTHER.taking(breaks=str(held()["holder"])))
        return True

    yield FunctionCommand(broken, (), {})


@operation()
@lock.changing
def confirmed(path: Path) -> Commands:
    if not path.exists():
        lock.confirm(host)
        yield StringCommand("touch", str(path))


def ask(script: str) -> None:
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True, capture_output=True)


def held() -> dict[str, object]:
    path = Path(paths.lock("main"))
    return dict(json.loads(path.read_text())) if path.exists() else {}


@pytest.fixture
def run(node_root: Path) -> Iterator[Run]:
    """Operation -> whether it went well; each runs alone, after a guard, as in a deploy."""

    def runs(*operations: Callable[..., object], path: Path, **data: object) -> dict[str, bool]:
        state = State(Inventory((["@local"], {}), override_data=data), Config())
        names = [one.__name__ for one in operations]
        with ctx_state.use(state), ctx_config.use(state.config):
            connect_all(state)
            local = state.inventory.get_host("@local")
            lock.guard(state, local, "main", "@local", "test")
            metas = [next(iter(add_op(state, one, path=path).values())) for one in operations]
            assert held().get("holder") in (None, OTHER.holder), "preparing takes no lock"
            try:
                run_ops(state)
            except Exception:
                assert state.failed_hosts
            disconnect_all(state)
        done = [meta.is_complete() and meta.did_succeed() for meta in metas]
        return dict(zip(names, done, strict=True))

    yield runs


def test_it_is_held_while_something_changes_and_given_back_at_the_end(
    run: Run, tmp_path: Path
) -> None:
    assert run(file_there, path=tmp_path / "a") == {"file_there": True}
    assert (tmp_path / "a").exists() and held() == {}


def test_another_s_lock_stops_changes_and_not_the_rest(run: Run, tmp_path: Path) -> None:
    ask(OTHER.taking())
    assert run(file_there, path=tmp_path / "a") == {"file_there": False}
    assert not (tmp_path / "a").exists()
    (tmp_path / "a").touch()
    assert run(file_there, path=tmp_path / "a") == {"file_there": True}
    assert held()["holder"] == OTHER.holder


def test_it_is_broken_by_name_and_by_no_other(run: Run, tmp_path: Path) -> None:
    ask(OTHER.taking())
    assert not run(file_there, path=tmp_path / "a", break_lock="bob@desk:2")["file_there"]
    assert run(file_there, path=tmp_path / "a", break_lock=OTHER.holder)["file_there"]
    assert held() == {}


def test_a_run_that_has_lost_it_changes_nothing_more(run: Run, tmp_path: Path) -> None:
    done = run(locked_out, confirmed, path=tmp_path / "a")
    assert done == {"locked_out": True, "confirmed": False}
    assert not (tmp_path / "a").exists()
    assert held()["holder"] == OTHER.holder, "and it takes nothing away from who has it"
