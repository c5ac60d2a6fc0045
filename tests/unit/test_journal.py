"""The journals of several ranks as one."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from paramiko import SSHException
from pyinfra.connectors.util import CommandOutput, OutputLine

from pyinfra_vllm import journal
from pyinfra_vllm.cli import _logs
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts import reach


def line(at: float, message: object) -> str:
    return json.dumps({"__REALTIME_TIMESTAMP": str(int(at * 1e6)), "MESSAGE": message})


def test_lines_are_interleaved_by_time_and_keep_their_order_within_a_rank() -> None:
    first = list(journal.entries(0, [line(2, "b"), line(2, "c"), "no json", "{}"]))
    second = list(journal.entries(1, [line(1, "a"), line(3, list(b"d\ne"))]))
    found = journal.interleaved([first, second])
    assert [(entry.rank, entry.text) for entry in found] == [
        (1, "a"), (0, "b"), (0, "c"), (1, "d"), (1, "e"),
    ]  # fmt: skip
    assert found[0].line.endswith(".000 rank 1 | a")


def test_the_command_takes_no_word_of_the_user_for_an_option_of_the_shell() -> None:
    found = journal.command("main", "1 min ago; reboot", 5, follow=False)
    assert "--since '1 min ago; reboot' --lines 5" in found
    assert "--follow" in journal.command("main", None, None, follow=True)


def kept(start: int, rank: int, text: str, **about: object) -> str:
    """What a node keeps of a start in which ``rank`` went first."""
    first = {"rank": rank, "exit_code": 1, "text": text}
    return json.dumps({"start": start, "nonce": f"n{start}", "ended": 100.0 + start,
                       "first": first, **about})  # fmt: skip


def test_the_first_failure_is_that_of_the_rank_which_went_first() -> None:
    printed = {
        0: [kept(6, 1, "older"), kept(7, 2, "engine exited", lines=["head"])],
        2: [kept(7, 2, "engine exited", lines=["the reason"], last_request="/v1/x"), "{torn"],
        3: [kept(6, 1, "older", lines=["old"])],
        1: [],
    }
    found = journal.first_failure(printed, {2: "spark-2"})
    assert "start 7 ended" in found[0] and "rank 2 (spark-2) went first, exit code 1" in found[0]
    assert found[-1] == "  the reason" and "  the last request was /v1/x" in found
    del printed[2]
    assert "has kept nothing" in journal.first_failure(printed, {})[-1]
    assert journal.first_failure({0: []}, {}) == ["no start has failed yet, or nobody has kept how"]


@pytest.mark.parametrize(
    "text", ["switch to aaaa", "an operator stopped it", "paused by ops at 02:14: new cables"]
)
def test_a_start_that_was_asked_to_end_is_no_failure(text: str) -> None:
    failed = kept(7, 1, "engine exited", lines=["why"])
    # The worker has only seen the head go.
    printed = {0: [failed, kept(8, 0, text)], 1: [failed, kept(8, 0, "the head is gone")]}
    assert "start 7 ended" in journal.first_failure(printed, {})[0]
    assert journal.first_failure({0: [kept(8, 0, text)]}, {})[0].startswith("no start has failed")


def test_a_new_head_counts_its_starts_anew() -> None:
    printed = {0: [kept(1, 1, "new", ended=900.0)], 1: [kept(40, 1, "old")]}
    assert "start 1 ended" in journal.first_failure(printed, {})[0]


def test_a_wrong_rank_or_gang_is_told_which_there_are() -> None:
    data = {"a": {"vllm_rank": 0}, "b": {"vllm_rank": 1}, "c": {"vllm_rank": 0, "vllm_gang": "x"}}
    assert _logs.members(data, "i.py", "main", [1]) == {"b": 1}
    with pytest.raises(UserError, match="--rank 9: gang main has no such rank; it has 0, 1"):
        _logs.members(data, "i.py", "main", [0, 9])
    with pytest.raises(UserError, match="there is no gang y; it has main, x"):
        _logs.members(data, "i.py", "y", None)


class _Host:
    """A host whose command ends as it is told to."""

    def __init__(self, name: str, end: Exception | None = None) -> None:
        self.name, self._end = name, end

    def run_shell_command(self, *_: object, **__: object) -> tuple[bool, CommandOutput]:
        if self._end:
            raise self._end
        return True, CommandOutput([OutputLine("stdout", line(1, "said"))])


def test_a_node_that_goes_silent_is_named_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reach, "connector_arguments", lambda *_: {})
    hosts = {0: _Host("a"), 1: _Host("b", TimeoutError()), 2: _Host("c", SSHException("gone"))}
    found = _logs.Ranks(cast(Any, None), "main", cast(Any, hosts), [])
    assert [entry.rank for entry in found.entries("journalctl")] == [0]
    assert found.silent == ["b", "c"]
    assert capsys.readouterr().err == "b: no answer in 30 s\nc: gone\n"
