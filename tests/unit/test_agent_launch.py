"""launch.json and the command line that follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_launch import document_of, launch_of
from pyinfra_vllm.agent import container, gid, launch, paths
from pyinfra_vllm.agent.errors import Unmet


def test_command_line_is_complete_and_in_order() -> None:
    mounts = [
        {"source": "/hub", "target": "/hub", "read_only": True, "create": False},
        {"source": "/a,b", "target": "/c", "read_only": False, "create": True},
    ]
    assert container.run(launch_of(mounts=mounts), "sha256:1") == [
        *["docker", "run", "--pull", "never", "--name", "vllm-main"],
        *["--label", "pyinfra-vllm.gang=main"],
        *["--log-driver", "none"],
        *["--network", "host"],
        *["--mount", "type=bind,source=/hub,target=/hub,readonly"],
        *["--mount", 'type=bind,"source=/a,b",target=/c'],
        *["--env", "A=one two", "--env", "B="],
        *["--entrypoint", "vllm", "sha256:1", "serve", "/model", "--master-port", "29501"],
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rank": "0"}, 'rank: expected an integer, got "0"'),
        ({"rank": True}, "rank: expected an integer, got true"),
        ({"rank": 2}, "rank: 2 is not below size 2"),
        ({"mounts": [{"source": "x"}]}, "mounts[0].source: expected an absolute path"),
        ({"mounts": [{"source": "/x/../y"}]}, "mounts[0].source: expected an absolute path"),
        ({"environ": {"A": 1}}, "environ.A: expected a string, got 1"),
        ({"argv": []}, "argv: is empty"),
        ({"argv": ["a", 1]}, "argv.1: expected a string, got 1"),
        ({"api": {"address": "x"}}, "api.port: is missing"),
        ({"labels": {}}, "could not find its own container"),
    ],
)
def test_broken_launch_names_file_key_and_what_was_expected(
    changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(Unmet) as unmet:
        launch_of(**changes)
    assert "launch.json" in str(unmet.value) and expected in str(unmet.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "is not there; run the deploy"),
        ("{", "is no JSON"),
        ('{"schema": 2}', "schema 2 is not known to this agent"),
        ("[]", "the document: expected a table"),
    ],
)
def test_launch_file_that_cannot_be_read_says_why(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    if text is not None:
        (tmp_path / paths.LAUNCH).write_text(text)
    with pytest.raises(Unmet, match=expected):
        launch.load(tmp_path)


def test_launch_of_another_gang_is_refused(tmp_path: Path) -> None:
    (tmp_path / paths.LAUNCH).write_text(json.dumps(document_of()))
    with pytest.raises(Unmet, match="gang: is 'main', expected 'other'"):
        launch.load(tmp_path, "other")


def _hca(root: Path, name: str, gids: dict[int, tuple[str, str]]) -> None:
    port = root / "sys/class/infiniband" / name / "ports/1"
    (port / "gids").mkdir(parents=True)
    (port / "gid_attrs" / "types").mkdir(parents=True)
    for index, (gid_text, kind) in gids.items():
        (port / "gids" / str(index)).write_text(gid_text + "\n")
        if kind:
            (port / "gid_attrs" / "types" / str(index)).write_text(kind + "\n")


_LINK_LOCAL = "fe80:0000:0000:0000:4ebb:47ff:fe2d:fc8e"
_FABRIC = "0000:0000:0000:0000:0000:ffff:c0a8:b10b"
_UNUSED = "0000:0000:0000:0000:0000:0000:0000:0000"


def test_gid_index_is_that_of_roce_v2_with_an_ipv4_address_on_every_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    one = {
        0: (_LINK_LOCAL, "IB/RoCE v1"),
        1: (_LINK_LOCAL, "RoCE v2"),
        2: (_FABRIC, "IB/RoCE v1"),
        3: (_FABRIC, "RoCE v2"),
        4: (_UNUSED, ""),
    }
    _hca(tmp_path, "rocep1s0f0", one)
    _hca(tmp_path, "roceP2p1s0f0", one)
    _hca(tmp_path, "moved", {2: (_FABRIC, "IB/RoCE v1"), 5: (_FABRIC, "RoCE v2")})
    assert gid.environ("rocep1s0f0,roceP2p1s0f0") == {"NCCL_IB_GID_INDEX": "3"}
    assert gid.environ("moved") == {"NCCL_IB_GID_INDEX": "5"}
    for unknown in ("rocep1s0f0,moved", "absent", "", None):
        assert gid.environ(unknown) == {}


def test_what_a_start_finds_wins_over_the_release() -> None:
    argv = container.run(launch_of(environ={"A": "1", "B": "2"}), "i", {"B": "3", "C": "4"})
    assert [word for word in argv if word[1:] in ("=1", "=2", "=3", "=4")] == ["A=1", "B=3", "C=4"]
