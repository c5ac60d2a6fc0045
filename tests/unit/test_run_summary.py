"""The few lines at the end of a run."""

from __future__ import annotations

from pyinfra_vllm.run_summary import Served, Stage, lines

URL = "http://spark-0:8000/v1"
GANG = Served("main", "r37", "ab" * 32, URL, "spark-0", frozenset({"spark-0", "spark-1"}))


def test_a_run_without_a_change_says_so_and_how_long_it_took() -> None:
    assert lines([Stage("Release: files", 0.1)], [GANG], 1.62) == [
        "gang main: r37, release abababababab, not restarted: http://spark-0:8000/v1",
        "changed     nothing",
        "took        1.6 s in all",
    ]


def test_a_switch_is_named_with_the_slowest_stages_first() -> None:
    stages = [
        Stage("Release: files", 2.0, "staging", {"spark-1", "spark-0"}),
        Stage("Gang: started", 0.4, "restart", {"spark-0"}),
        Stage("Gang: ready", 51.2, "watch", {"spark-0"}),
    ]
    assert lines(stages, [GANG], 55.0) == [
        "gang main: r37, release abababababab, restarted: http://spark-0:8000/v1",
        "changed     Release: files (spark-0, spark-1)",
        "            Gang: started (spark-0)",
        "took        55.0 s in all",
        "            51 s Gang: ready",
        "            2 s Release: files",
    ]


def test_a_failure_is_named_where_it_came_first() -> None:
    stages = [
        Stage("Agent: installed", failed={"spark-1"}),
        Stage("Gang: whole", failed={"spark-0"}),
    ]
    assert lines(stages, [GANG], 3.0)[0] == (
        "gang main: r37, release abababababab: failed at Agent: installed (spark-1)"
    )


def test_the_failure_of_another_gang_is_not_this_one_s() -> None:
    assert "not restarted" in lines([Stage("Image", failed={"other"})], [GANG], 3.0)[0]


def test_a_gang_that_does_not_serve_gets_no_url_but_the_reason() -> None:
    paused = "paused by me@here: cables; deploys/resume.py starts it"
    stage = Stage("Release: files", changed={"spark-0"})
    first, *_ = lines([stage], [GANG], 3.0, {"main": paused, "other": "not serving"})
    assert first == f"gang main: r37, release abababababab: {paused}"
    failed = Stage("Gang: ready", failed={"spark-0"})
    assert "failed at Gang: ready" in lines([failed], [GANG], 3.0, {"main": paused})[0]
    assert lines([stage], [GANG], 3.0, {"main": ""})[0].endswith(f"not restarted: {URL}")
