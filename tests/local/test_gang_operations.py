"""Operations that concern a whole gang, on four nodes that are folders of this machine."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from local.gang_apply import LocalGang
from pyinfra_vllm import catalog
from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.members import secret as secret_of_agent
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.operations import members, secret
from pyinfra_vllm.release import Content, release_of

NAMES = [f"node-{rank}" for rank in range(4)]
ALL, NONE = dict.fromkeys(NAMES, True), dict.fromkeys(NAMES, False)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def gang(node_root: Path) -> LocalGang:
    nodes = tuple(
        Node(name, rank, f"10.0.0.{rank}", ("eth0",), (), "/hub", False, alert="page someone")
        for rank, name in enumerate(NAMES)
    )
    recipe = catalog.find("tiny-cpu-4x").recipe
    revisions = {"tiny-random/llama-tp4": COMMIT}
    content = Content("tiny-cpu-4x", recipe, Gang("main", nodes), None, revisions)
    return LocalGang(release_of(content), node_root)


def changed(applied: dict[str, bool | None]) -> list[str]:
    return [name for name, change in applied.items() if change is not False]


def members_file(gang: LocalGang, node: str) -> Path:
    return gang.here(node, paths.members("main"))


def secret_file(gang: LocalGang, node: str) -> Path:
    return gang.here(node, paths.secret("main"))


def test_every_node_knows_its_rank_and_all_addresses(gang: LocalGang) -> None:
    assert gang.apply(members.known) == ALL
    for rank, node in enumerate(NAMES):
        known = json.loads(members_file(gang, node).read_text())
        assert known["rank"] == rank
        assert known["addresses"] == ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3"]
        assert known["alert"] == "page someone"
    assert gang.apply(members.known) == NONE


@pytest.mark.parametrize("how", ["edited", "missing", "mode"])
def test_a_broken_members_file_is_repaired_on_its_node_alone(gang: LocalGang, how: str) -> None:
    gang.apply(members.known)
    path = members_file(gang, "node-2")
    text = path.read_text()
    if how == "edited":
        path.write_text(text.replace("page someone", "true"))
    elif how == "missing":
        path.unlink()
    else:
        path.chmod(0o600)
    assert changed(gang.apply(members.known)) == ["node-2"]
    assert path.read_text() == text
    assert gang.apply(members.known) == NONE


def test_the_diff_shows_what_becomes_of_the_members(
    gang: LocalGang, caplog: pytest.LogCaptureFixture
) -> None:
    gang.apply(members.known)
    path = members_file(gang, "node-1")
    path.write_text(path.read_text().replace("page someone", "true"))
    with caplog.at_level("INFO", logger="pyinfra"):
        gang.apply(members.known, diff=True)
    assert '-   "alert": "true"' in caplog.text
    assert '+   "alert": "page someone"' in caplog.text


def test_the_secret_is_made_once_and_is_the_same_on_all(gang: LocalGang) -> None:
    assert gang.apply(secret.shared) == ALL
    values = {secret_file(gang, node).read_bytes() for node in NAMES}
    assert len(values) == 1
    assert len(values.pop()) == 32
    assert {secret_file(gang, node).stat().st_mode & 0o777 for node in NAMES} == {0o600}
    assert gang.apply(secret.shared) == NONE


@pytest.mark.parametrize(
    ("node", "how"),
    [
        *itertools.product(["node-0", "node-3"], ["missing", "short", "readable"]),
        ("node-3", "another"),
    ],
)
def test_a_node_without_the_secret_gets_that_of_the_others(
    gang: LocalGang, node: str, how: str
) -> None:
    gang.apply(secret.shared)
    path = secret_file(gang, node)
    known = secret_file(gang, "node-1").read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "readable":
        path.chmod(0o644)
    elif how == "short":
        path.write_bytes(b"s" * 31)
    else:
        path.write_bytes(b"s" * 32)
    assert changed(gang.apply(secret.shared)) == [node]
    assert path.read_bytes() == known
    assert path.stat().st_mode & 0o777 == 0o600
    assert gang.apply(secret.shared) == NONE


def test_the_secret_is_never_shown(gang: LocalGang, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="pyinfra"):
        gang.apply(secret.shared, diff=True)
        secret_file(gang, "node-2").unlink()
        gang.apply(secret.shared, diff=True)
    value = secret_file(gang, "node-0").read_bytes()
    assert "Will make the secret" in caplog.text
    assert "Will copy the secret" in caplog.text
    assert value.hex() not in caplog.text
    assert base64.b64encode(value).decode() not in caplog.text


def test_a_gang_of_one_has_no_secret(gang: LocalGang) -> None:
    content = gang.release.content
    alone = Gang("main", content.gang.nodes[:1])
    one = LocalGang(replace(gang.release, content=replace(content, gang=alone)), gang.root)
    assert one.apply(secret.shared) == {"node-0": False}
    assert not secret_file(one, "node-0").exists()


def test_a_secret_that_cannot_be_read_fails_that_node_with_a_message_and_no_traceback(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gang.apply(secret.shared)
    secret_file(gang, "node-2").unlink()

    def refused(*_: object) -> bytes:
        raise UserError("node-0: the secret can't be read")

    monkeypatch.setattr(secret, "_read", refused)
    assert gang.apply(secret.shared) == {**NONE, "node-2": None}
    assert "[node-2] node-0: the secret can't be read" in caplog.text
    assert "Traceback" not in caplog.text
    assert not secret_file(gang, "node-2").exists()


def test_what_a_deploy_lays_is_what_an_agent_takes(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    gang.apply(secret.shared)
    monkeypatch.setattr(paths, "here", lambda path: gang.here("node-1", path))
    assert secret_of_agent("main") == secret_file(gang, "node-0").read_bytes()
    secret_file(gang, "node-1").chmod(0o640)
    with pytest.raises(Unmet, match="can be read by others"):
        secret_of_agent("main")
