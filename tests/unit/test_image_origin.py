"""Where images come from, what a build shows, and what may be removed."""

from __future__ import annotations

import pytest

from pyinfra_vllm.image import Build, build_of
from pyinfra_vllm.image_origin import Origin, builders, origin, refusal
from pyinfra_vllm.image_profile import Resources
from pyinfra_vllm.image_scripts import building, receiving, sharing, steps
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.node.build import Progress
from unit.gb10 import document

DIGEST = "sha256:" + "a" * 64
ENGINE = {
    "id": "1",
    "name": "vllm-main",
    "image": "x",
    "ours": True,
    "state": "running",
    "exit_code": 0,
    "pid": 1,
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Origin("head")),
        ("head", Origin("head")),
        ("present", Origin("present")),
        ("builder:box", Origin("builder", "box")),
        ("archive:/mnt/nas/a.tar", Origin("archive", "/mnt/nas/a.tar")),
        (f"registry:box:5000/a@{DIGEST}", Origin("registry", f"box:5000/a@{DIGEST}")),
    ],
)
def test_every_source_can_be_named(value: object, expected: Origin) -> None:
    assert origin(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("achive:/a", "did you mean archive?"),
        ("archive:a.tar", "expected archive:/PATH.tar"),
        ("registry:a:latest", "expected registry:REPOSITORY@sha256:DIGEST"),
        ("builder", "expected builder:HOST"),
        (1, "the number 1"),
    ],
)
def test_what_is_no_source_is_answered_with_what_is_one(value: object, expected: str) -> None:
    with pytest.raises(ValueError, match=r"expected|source") as caught:
        origin(value)
    assert expected in str(caught.value)


def test_builders_are_those_that_some_host_names() -> None:
    hosts = {"a": {"vllm_image_source": "builder:box"}, "b": {"vllm_image_source": 7}, "box": {}}
    assert builders(hosts) == {"box"}


def image(memory_gib: int | None) -> Build:
    return Build("a:1", "d" * 64, {}, needs=Resources(memory_gib=memory_gib, minutes=70))


def node(*containers: dict[str, object]) -> NodeState:
    state = document(0)
    state["containers"] = {"ok": True, "value": list(containers), "seconds": 0.1}
    return NodeState.model_validate(state)


def test_a_build_beside_an_engine_needs_room_that_is_there() -> None:
    assert refusal(image(None), node()) is None
    assert refusal(image(8), node(ENGINE)) is None
    for needs in (None, 117, 200):
        said = refusal(image(needs), node(ENGINE)) or ""
        assert "117.7 of 121.7 GiB of memory are available" in said
        assert "archive:/PATH.tar" in said
        assert "about 70 minutes" in said
        assert 'vllm_image_source = "window"' in said


def test_steps_are_counted_as_docker_does() -> None:
    text = "FROM a AS x\nRUN one \\\n  two\nFROM x AS y\nCOPY a b\nFROM b\nCOPY --from=y / /\n"
    assert steps(Build("a:1", "d" * 64, {"Dockerfile": text.encode()})) == 5


def test_scripts_carry_what_they_are_asked() -> None:
    build = build_of("vllm-cpu", "vllm-cpu", "x:1")
    for script in (
        building(build),
        sharing("sha256:1", "10.0.0.1", "token", 3),
        receiving("x:1", build.digest, ["l"], 1, "10.0.0.1", "token"),
    ):
        compile(script, "script", "exec")
        assert "REQUEST = _json.loads(" in script


def test_progress_knows_the_step_and_its_last_line() -> None:
    progress = Progress(4)
    for line in (
        "#1 [internal] load build definition from Dockerfile",
        "#1 DONE 0.0s",
        "#5 [a 1/2] FROM b",
        "#5 CACHED",
        "#6 [a 2/2] RUN make",
        "#6 sha256:aa",
        "#6 0.123 compiling",
    ):
        progress.feed(line)
    assert progress.shown(65) == "step 2/4, 1 min 05 s: [a 2/2] RUN make: compiling"


def test_a_failure_names_the_step_that_failed_and_not_what_ran_beside_it() -> None:
    progress = Progress(4)
    progress.feed("#6 [a 1/2] RUN fails")
    progress.feed("#7 [b 1/2] RUN goes on")
    for number in range(50):
        progress.feed(f"#6 1.{number} line {number}")
        progress.feed(f"#7 1.{number} other {number}")
    progress.feed("#6 ERROR: executor failed running")
    assert "RUN fails" in progress.failure()
    assert "line 49" in progress.failure()
    assert "line 9\n" not in progress.failure()
    assert "other" not in progress.failure()


def test_without_a_step_that_failed_everything_is_shown() -> None:
    progress = Progress(1)
    progress.feed("Cannot connect to the Docker daemon")
    assert progress.failure().endswith("Cannot connect to the Docker daemon")
