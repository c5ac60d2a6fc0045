"""Who belongs to a gang, as its nodes know it, when releases have more or fewer ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent_launch import launch_of
from pyinfra_vllm.agent import members, paths, prepare
from pyinfra_vllm.agent.errors import Absent, Unmet
from pyinfra_vllm.cluster import Gang
from pyinfra_vllm.unit_files import members_text
from unit.gangs import sparks

FOUR = sparks(4)
TWO = Gang("main", FOUR.nodes[:2])


def text(gang: Gang, known: str | None = None, most: int = 4) -> str:
    return members_text(gang, gang.head, known, most)


def addresses(gang: Gang, known: str | None = None, most: int = 4) -> list[str]:
    return list(json.loads(text(gang, known, most))["addresses"])


def test_a_smaller_release_forgets_nobody_that_the_inventory_has() -> None:
    assert addresses(TWO) == list(TWO.addresses)
    assert text(TWO, text(FOUR)) == text(FOUR)
    assert addresses(TWO, text(FOUR), most=2) == list(TWO.addresses)
    assert addresses(FOUR, text(TWO)) == list(FOUR.addresses)


@pytest.mark.parametrize(
    "known",
    [
        "",
        "{}",
        "[1]",
        '{"addresses": 5}',
        text(Gang("main", FOUR.nodes[::-1])),
        json.dumps({"addresses": [*TWO.addresses, TWO.addresses[0]]}),
    ],
)
def test_nothing_is_kept_of_what_is_broken_or_of_another_order(known: str) -> None:
    assert addresses(TWO, known) == list(TWO.addresses)


def test_a_head_that_knows_too_few_ranks_lacks_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    path = paths.here(paths.members("main"))
    path.parent.mkdir(parents=True)
    path.write_text(text(TWO))
    head = launch_of()
    prepare._check_members("main", replace(head, size=2))
    prepare._check_members("main", replace(head, rank=1, size=4))
    with pytest.raises(Absent, match="knows 2 of the 4 ranks of the release; deploy its recipe"):
        prepare._check_members("main", replace(head, size=4))


@pytest.mark.parametrize("port", [-1, 70_000_000])
def test_a_port_that_is_none_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    path = paths.here(paths.members("main"))
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**json.loads(text(TWO)), "port": port}))
    with pytest.raises(Unmet, match=f"port {port} is none; run the deploy again"):
        members.load("main")
