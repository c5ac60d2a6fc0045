"""The table of ``pyinfra-vllm facts``."""

from __future__ import annotations

from pathlib import Path

from pyinfra_vllm import overview
from pyinfra_vllm.node import parse
from unit import gb10

DATA = Path(__file__).parent / "data"


def test_a_person_sees_each_node_in_a_line_and_who_is_missing() -> None:
    states = gb10.states()
    del states["spark-3"]
    lines = overview.table(states, {"spark-3": "can't be reached"})
    assert len({line.find("docker") for line in lines[:1]}) == 1
    assert lines[1].startswith("spark-0  Debian GNU/Linux 12, 6.11.0-1016-nvidia aarch64")
    assert "117.7 of 121.7 GiB" in lines[1] and "GB10 (580.95.05)" in lines[1]
    assert "192.168.100.10 enp1s0f0np0 200 Gb/s rocep1s0f0" in lines[1]
    assert "no answer" in lines[4]
    assert lines[5] == "spark-3: can't be reached"


def test_what_serves_is_shown_by_digest_recipe_and_phase() -> None:
    state = parse((DATA / "node_state_head_serving.json").read_text())
    row = overview.row("lab-0", state)
    assert row[-2] == f"{(state.current_release or '')[:12]} tiny-cpu-4x"
    assert row[-1] == "serving"


def test_a_part_that_cannot_be_read_is_a_question_mark_with_its_reason_below() -> None:
    states = {"spark-0": gb10.states()["spark-0"]}
    sick = states["spark-0"].model_dump(by_alias=True)
    sick["gpus"] = {"ok": False, "error": "nvidia-smi: no answer in 5 s"}
    states["spark-0"] = type(states["spark-0"]).model_validate(sick)
    lines = overview.table(states, {})
    assert " ? " in lines[1]
    assert lines[2] == "spark-0: gpus can't be read: nvidia-smi: no answer in 5 s"
