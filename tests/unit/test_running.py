"""An engine that runs is compared with the release, not with the files beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyinfra_vllm import docker_options
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import image_on
from pyinfra_vllm.leftovers import unused_containers, unused_paths
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.running import differences
from pyinfra_vllm.unit_files import broken_promises
from unit.gangs import BUILD, release

RELEASE = release()
NODE = RELEASE.content.gang.nodes[1]
LAUNCH = json.loads(RELEASE.files(NODE)["launch.json"])
OPTIONS = docker_options.told(LAUNCH["options"], RELEASE.files(NODE)["seccomp.json"])
IMAGE = {"id": "sha256:1", "build": BUILD, "layers": ["l"], "environ": ["PATH"]}


def state(status: dict[str, Any] | None = None, **container: Any) -> NodeState:
    found = {
        "id": "c", "name": "vllm-main", "image": "sha256:1", "ours": True, "state": "running",
        "exit_code": 0, "pid": 5,
        "labels": {**LAUNCH["labels"], paths.LABEL_START: "3"},
        "argv": LAUNCH["argv"],
        "environ": {**LAUNCH["environ"], "PATH": None, "NCCL_IB_GID_INDEX": "3"},
        "mounts": [{key: m[key] for key in ("source", "target", "read_only")}
                   for m in LAUNCH["mounts"]],
        "options": OPTIONS, "gpu": "--gpus" in LAUNCH["options"],
        **container,
    }  # fmt: skip
    values: dict[str, Any] = {
        "containers": [found],
        "images": [IMAGE],
        "unit": {"load": "loaded", "active": "active", "sub": "running", "enabled": "enabled",
                 "path": "", "main_pid": 7},
        "agent": {"status": {"release": RELEASE.digest, "pid": 7, "phase": "serving", "start": 3,
                             **(status or {})}},
    }  # fmt: skip
    parts = {name: {"ok": True, "value": value} for name, value in values.items()}
    return NodeState.model_validate({"schema": 1, **parts})


def test_an_engine_of_the_release_differs_in_nothing() -> None:
    assert differences(RELEASE, NODE, state()) == []


@pytest.mark.parametrize(
    ("container", "says"),
    [
        ({"argv": [*LAUNCH["argv"], "--seed", "7"]}, "argv is with --seed 7"),
        ({"argv": LAUNCH["argv"][:-1]}, "argv is without"),
        ({"argv": [*LAUNCH["argv"][1:], LAUNCH["argv"][0]]}, "argv is in another order"),
        ({"environ": {}}, "environ lacks"),
        ({"environ": {**LAUNCH["environ"], "X": None}}, "environ has X"),
        ({"mounts": []}, "lacks the mount"),
        ({"options": {**OPTIONS, "--memory": ["1073741824"]}}, "container has --memory 1073741824"),
        ({"options": {**OPTIONS, "--network": ["bridge"]}}, "container lacks --network host"),
        ({"image": "sha256:9"}, "image is sha256:9"),
        ({"labels": {paths.LABEL_START: "3"}}, "label pyinfra-vllm.gang is missing"),
    ],
)
def test_each_difference_is_named(container: dict[str, Any], says: str) -> None:
    assert any(says in line for line in differences(RELEASE, NODE, state(**container)))


def test_the_image_of_the_engine_is_judged_by_its_content_not_by_what_has_the_tag_now() -> None:
    assert differences(RELEASE, NODE, state(image="sha256:9", layers=["l"]), ["l"]) == []
    (line,) = differences(RELEASE, NODE, state(layers=["x"]), ["l"])
    assert line == "image is sha256:1, not that of the release"


def test_of_two_images_of_a_build_the_tagged_one_is_the_releases() -> None:
    tagged = {"id": "sha256:2", "build": BUILD, "tags": [RELEASE.content.recipe.docker_image]}
    parts = {"images": {"ok": True, "value": [IMAGE, tagged]}}
    found = image_on(RELEASE, NodeState.model_validate({"schema": 1, **parts}))
    assert found is not None and found.id == "sha256:2"


@pytest.mark.parametrize(
    "status",
    [{"phase": "preparing"}, {"start": 4}, {"pid": 8}, {"release": "b" * 64}],
    ids=lambda status: next(iter(status)),
)
def test_an_engine_on_its_way_out_is_not_judged(status: dict[str, Any]) -> None:
    assert differences(RELEASE, NODE, state(status, argv=["other"])) == []


def test_what_an_older_look_did_not_tell_is_no_difference() -> None:
    assert differences(RELEASE, NODE, state(argv=None, environ=None, options=None)) == []


def test_only_ended_containers_and_paths_that_nothing_needs_are_left_over() -> None:
    gone = "f" * 64
    parts: dict[str, Any] = {
        "containers": [
            {"id": "a", "name": "left", "image": "i", "ours": True, "state": "exited", "pid": 0,
             "exit_code": 1, "labels": {paths.LABEL_GANG: "main"}},
            {"id": "b", "name": "left2", "image": "i", "ours": True, "state": "running", "pid": 3,
             "exit_code": 0, "labels": {paths.LABEL_GANG: "main", paths.LABEL_RELEASE: "e" * 64}},
            {"id": "c", "name": "theirs", "image": "i", "ours": False, "state": "exited", "pid": 0,
             "exit_code": 0},
        ],
        "gang": {"releases": {}, "strangers": ["releases/mine"]},
        "leftovers": {"composed": [f"main/{gone}", f"other/{gone}", f"main/{'e' * 64}",
                                   f"main/{RELEASE.digest}", "main/.lock"]},
    }  # fmt: skip
    document = {name: {"ok": True, "value": value} for name, value in parts.items()}
    found = NodeState.model_validate({"schema": 1, **document})
    assert [one.name for one in unused_containers(RELEASE, found)] == ["left"]
    assert unused_paths(RELEASE, found) == [
        f"{paths.gang_root('main')}/releases/mine", paths.composed("main", gone),
    ]  # fmt: skip


def test_a_drop_in_of_this_unit_may_set_what_healing_does_not_rest_on() -> None:
    folder = "/etc/systemd/system/vllm-main.service.d"
    drop_ins = {
        f"{folder}/pace.conf": ("Environment", "WatchdogSec"),
        f"{folder}/bad.conf": ("Environment", "Restart"),
        "/etc/systemd/system/service.d/all.conf": ("Restart",),
    }
    assert broken_promises("vllm-main.service", drop_ins) == {f"{folder}/bad.conf": ["Restart"]}
