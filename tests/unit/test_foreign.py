"""What else is on a node: engines of others, by the name that stops them, and earlier gangs."""

from __future__ import annotations

from typing import Any

from pyinfra_vllm import foreign_names, preflight
from pyinfra_vllm.node.collect.listeners import unit_of
from pyinfra_vllm.node.models import Container, Process
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations import foreign as operations
from pyinfra_vllm.preflight.finding import Finding
from unit import gb10
from unit.gangs import sparks

GIB = 1 << 30
CONTAINER: dict[str, Any] = {
    "id": "c" * 64, "name": "chat-old", "image": "sha256:1", "ours": False, "state": "running",
    "exit_code": 0, "pid": 9, "gpu": True,
}  # fmt: skip
IN_UNIT = {"pid": 7, "command": ["ollama", "serve"], "user": "eve", "unit": "ollama.service"}


def with_foreign() -> dict[str, NodeState]:
    """On spark-0 a container has the API's port, the GPU and memory; on spark-2 runs a unit."""
    inside = {"pid": 9, "container_id": "c" * 64, "user": "eve"}
    documents = [gb10.document(rank) for rank in range(4)]
    documents[0]["containers"]["value"] = [CONTAINER]
    documents[0]["listeners"]["value"] = [{**inside, "port": 8000, "container": "chat-old"}]
    documents[0]["listeners"]["value"][0].pop("user")
    documents[0]["gpus"]["value"]["processes"] = [
        {**inside, "type": "C", "name": "python3", "memory": 80 * GIB}
    ]
    documents[0]["system"]["value"]["memory_available"] = 40 * GIB
    documents[2]["engines"]["value"] = [IN_UNIT]
    return {
        f"spark-{rank}": NodeState.model_validate(found) for rank, found in enumerate(documents)
    }


def found(*stops: str, alone: bool = True) -> dict[tuple[str, str], Finding]:
    """What isn't fine, by check and node."""
    recipe, build = gb10.RECIPE, gb10.build()
    findings = preflight.findings(recipe, sparks(4), build, with_foreign(), stops, alone)
    return {(f.check, f.node): f for f in findings if f.status != "ok"}


def test_the_owner_of_a_foreign_engine_is_named_with_the_way_to_stop_it() -> None:
    several = found()
    port, gpu = several["ports", "spark-0"], several["gpu-users", "spark-0"]
    assert port.status == gpu.status == "fail"
    assert "container chat-old" in port.measured
    assert "user eve, chat-old" in gpu.measured
    assert port.remedy.startswith("stop it, or let the deploy stop it right before the switch: ")
    assert "--data stop_foreign=chat-old" in port.remedy and "chat-old" in gpu.remedy
    assert "--data stop_foreign=ollama.service" in several["engines", "spark-2"].remedy


def test_what_is_to_be_stopped_stops_no_deploy_and_nothing_else_is_excused() -> None:
    several = found("chat-old")
    for check in ("ports", "gpu-users", "memory"):
        assert several[check, "spark-0"].status == "warn"
        assert "right before the switch" in several[check, "spark-0"].limit
    assert several["engines", "spark-2"].remedy, "the other one is still to be stopped by hand"


def test_a_process_in_no_unit_and_no_container_is_named_by_pid_and_node() -> None:
    bare = {"pid": 4711, "command": ["python3", "-m", "sglang"], "user": "eve"}
    gpu = {"pid": 4712, "type": "C", "name": "python3", "memory": 80 * GIB}
    broken = [(1, "engines", [bare]), (1, "gpus", {"processes": [gpu]})]
    known = {one.check: one for one in gb10.findings(*broken) if one.node == "spark-1"}
    assert "--data stop_foreign=4711@spark-1" in known["engines"].remedy
    assert "--data stop_foreign=4712@spark-1" in known["gpu-users"].remedy
    assert foreign_names.process("4711@spark-1") == (4711, "spark-1")
    assert not foreign_names.process("ollama.service") and foreign_names.of_process(0, "x") == ""


def test_only_what_the_preflight_has_named_runs_under_a_name() -> None:
    first, third = with_foreign()["spark-0"], with_foreign()["spark-2"]
    assert operations._runs("chat-old", first, "spark-0")
    assert operations._runs("ollama.service", third, "spark-2")
    assert not operations._runs("ssh.service", third, "spark-2")
    assert not operations._runs("7@spark-2", third, "spark-2"), "its unit would start it anew"
    assert not operations._runs("9@spark-0", first, "spark-0"), "it is in a container"
    document = gb10.document(1)
    document["engines"]["value"] = [{"pid": 4711}]
    bare = NodeState.model_validate(document)
    assert operations._runs("4711@spark-1", bare, "spark-1")
    assert not operations._runs("4711@spark-2", bare, "spark-1")
    assert not operations._runs("4712@spark-1", bare, "spark-1")


def test_a_name_that_nothing_has_is_an_error_that_says_what_there_is() -> None:
    wrong = found("chat-odl")["stop-foreign", ""]
    assert wrong.status == "fail"
    assert "chat-old, ollama.service" in wrong.remedy
    assert found()["memory", "spark-0"].status == "fail"
    known = found("chat-old", "of-gang-b", alone=False)["stop-foreign", ""]
    assert known.status == "warn" and "of-gang-b" in known.measured


def test_after_the_takeover_the_same_command_finds_nothing_wrong() -> None:
    clean = preflight.findings(gb10.RECIPE, sparks(4), gb10.build(), gb10.states(), ("chat-old",))
    assert not [f for f in clean if f.status == "fail"]


def test_a_node_of_another_gang_is_refused_until_that_is_taken_off() -> None:
    broken = (1, "leftovers", {"gangs": ["old", "main"], "units": ["vllm-old.service"]})
    (fault,) = [f for f in gb10.findings(broken) if f.check == "other-gangs" and f.status != "ok"]
    assert (fault.status, fault.node) == ("fail", "spark-1")
    assert "deploys/teardown.py --data gang=old" in fault.remedy
    units = {"gangs": ["main"], "units": ["vllm-main.service", "vllm-mine.service"]}
    found = gb10.findings((1, "leftovers", units))
    assert not [f for f in found if f.check == "other-gangs" and f.status != "ok"]


def test_old_states_without_units_are_read() -> None:
    assert Process.model_validate({"pid": 1}).unit is None
    assert Container.model_validate(CONTAINER).running
    assert unit_of(0) is None
