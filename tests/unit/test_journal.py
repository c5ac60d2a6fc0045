"""The journals of several ranks as one."""

from __future__ import annotations

import json

from pyinfra_vllm import journal


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


def test_the_first_failure_is_that_of_the_rank_which_went_first() -> None:
    about = {"ended": 100.0, "first": {"rank": 2, "exit_code": 1, "text": "engine exited"}}
    documents = {
        0: json.dumps({**about, "start": 7, "lines": ["head"]}),
        2: json.dumps({**about, "start": 7, "lines": ["the reason"], "last_request": "/v1/x"}),
        3: json.dumps({**about, "start": 6, "lines": ["old"]}),
        1: "",
    }
    found = journal.first_failure(documents, {2: "spark-2"})
    assert "start 7 ended" in found[0] and "rank 2 (spark-2) went first, exit code 1" in found[0]
    assert found[-1] == "  the reason" and "  the last request was /v1/x" in found
    del documents[2]
    assert "has kept nothing" in journal.first_failure(documents, {})[-1]
    assert journal.first_failure({0: ""}, {}) == ["no start has ended yet, or nobody has kept how"]
