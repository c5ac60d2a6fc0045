from __future__ import annotations

import pytest

from pyinfra_vllm import flags


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("--max_cudagraph_capture_size", "--max-cudagraph-capture-size"),
        ("--max-num-seqs=4", "--max-num-seqs"),
        ("--max_num_seqs=a_b", "--max-num-seqs"),
        ("--compilation_config.cudagraph_mode", "--compilation-config.cudagraph_mode"),
        ("-tp", "--tensor-parallel-size"),
        ("-tp=4", "--tensor-parallel-size"),
        ("-pp", "--pipeline-parallel-size"),
        ("-n", "--nnodes"),
        ("-n4", "--nnodes"),
        ("-r1", "--node-rank"),
        ("--tensor-parallel", "--tensor-parallel-size"),
        ("--node_r", "--node-rank"),
        ("--master-p=1", "--master-port"),
        ("--headl", "--headless"),
        ("--model-impl", "--model-impl"),
        ("--distributed-timeout-seconds", "--distributed-timeout-seconds"),
        ("--hf-overrides", "--hf-overrides"),
        ("-O3", "-O3"),
        ("--", "--"),
    ],
)
def test_every_spelling_of_a_flag_has_one_canonical_name(word: str, name: str) -> None:
    assert flags.canonical(word) == name


@pytest.mark.parametrize("word", ["-1", "-0.5", "-.5", "-", "", "value", "-not a flag", "{-}"])
def test_values_are_not_taken_for_flags(word: str) -> None:
    assert not flags.is_flag(word)


@pytest.mark.parametrize("word", ["-n", "--x", "--x=a b", "-O3", "--"])
def test_flags_are_taken_for_flags(word: str) -> None:
    assert flags.is_flag(word)


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (["--port", "9000"], "9000"),
        (["--port=9000"], "9000"),
        (["--port="], ""),
        (["--port", ""], ""),
        (["--port", "1", "--port=2"], "2"),
        (["--port"], None),
        (["--port", "--host", "x"], None),
        (["--portal", "1"], None),
        ([], None),
    ],
)
def test_the_last_value_wins(args: list[str], value: str | None) -> None:
    assert flags.value_of(args, "--port") == value


def test_a_flag_with_several_values_gives_the_first() -> None:
    args = ["--served-model-name", "a", "b", "--enforce-eager"]
    assert flags.value_of(args, "--served-model-name") == "a"
    assert flags.said(args) == (
        flags.Said(0, "--served-model-name", ("a", "b")),
        flags.Said(3, "--enforce-eager", ()),
    )


def test_has_sees_a_flag_without_a_value() -> None:
    assert flags.has(["--enable_auto_tool_choice"], "--enable-auto-tool-choice")
    assert not flags.has(["x", "headless"], "--headless")


def test_without_drops_every_spelling_and_keeps_the_rest() -> None:
    args = ["-tp", "4", "--seed", "-1", "--tensor_parallel_size=4", "--enforce-eager"]
    assert flags.without(args, "--tensor-parallel-size") == ("--seed", "-1", "--enforce-eager")
