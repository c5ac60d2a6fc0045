"""The state document on the controller: tolerant of other versions, plain about what is wrong."""

from __future__ import annotations

import ast
import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import pyinfra_vllm.node.collect as collect
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState, Query, SnapshotQuery, parse, script
from pyinfra_vllm.node.collect.main import part_functions
from pyinfra_vllm.node.script import AGENT, COLLECT, JUDGES, MODULES, NAMES

A, B = "a" * 64, "b" * 64
FILE = {"exists": True, "type": "file", "mode": "0644", "sha256": B, "text": "x\n"}
IMAGE = {"id": "sha256:1", "tags": ["vllm:local", "x:latest"], "build": A, "layers": ["sha256:2"]}
SNAPSHOT = {"hub": "/hub", "hub_exists": True, "repo": "a/b", "exists": True, "revision": "c0ffee"}


def document(**parts: Any) -> str:
    good = {name: {"ok": True, "value": value} for name, value in parts.items()}
    return json.dumps({"schema": 1, **good})


def test_a_blank_state_fails_nowhere_but_says_that_nothing_was_read() -> None:
    state = NodeState()
    assert not state.known
    # A state that was saved before there were these parts has none of them.
    later = {"secrets", "copies", "past", "metrics"}
    assert {*state.failures(), *later} == set(part_functions(Query().model_dump()))
    assert state.images.value_or(()) == ()
    with pytest.raises(UserError, match="was not read"):
        state.image_of(A)


def test_a_document_comes_back_as_it_was() -> None:
    state = parse(document(images=[IMAGE], files={"/f": FILE}))
    assert parse(state.model_dump_json(by_alias=True)) == state
    blank = NodeState()
    assert parse(blank.model_dump_json(by_alias=True)) == blank


def test_keys_and_parts_of_another_version_do_no_harm() -> None:
    newer = document(future={"x": 1}, files={"/f": {**FILE, "colour": "blue"}})
    state = parse(newer)
    assert state.file("/f") is not None
    older = parse(document())
    assert older.failures()["gang"] == "the state of the node was not read"


def test_a_part_that_failed_keeps_its_reason() -> None:
    text = json.dumps({"schema": 1, "docker": {"ok": False, "error": "docker: not installed"}})
    state = parse(text)
    assert state.failures()["docker"] == "docker: not installed"
    with pytest.raises(UserError, match=r"^docker: not installed$"):
        _ = state.docker.required


def test_lines_around_the_document_are_ignored() -> None:
    assert parse(f"Welcome to GB10\n{document(files={'/f': FILE})}\nbye\n").files.ok


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sh: 1: python3: not found", "printed no state document but: sh: 1: python3: not found"),
        ("", "no state document but: nothing"),
        ('{"schema": 1, "files": {"ok"', "cut off or no JSON"),
        ('{"schema": 1, "files": {"ok": true, "value": {"/f": {"type": 3}}}}', "files.value./f"),
    ],
)
def test_what_is_no_state_is_shown_from_its_start(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse(text)
    assert message in str(error.value)


def test_a_path_is_absent_or_told_and_never_guessed() -> None:
    missing = {"exists": False, "type": "missing"}
    state = parse(document(files={"/f": FILE, "/g": missing}, local_files={"/l": missing}))
    found = state.file("/f")
    assert found is not None and found.text == "x\n"
    assert state.file("/g") is None and state.local_file("/l") is None
    with pytest.raises(LookupError, match="was not asked about /h"):
        state.file("/h")


def test_images_are_found_by_build_and_by_tag() -> None:
    state = parse(document(images=[IMAGE]))
    image = state.image_of(A)
    assert image is not None and image.layers == ("sha256:2",)
    assert state.image_of(B) is None
    assert state.image_of(A, "other") == image, "no image has that tag"
    assert state.image_tagged("vllm:local") == state.image_tagged("x") == image
    assert state.image_tagged("vllm") is None


def test_the_current_release_is_what_the_link_names() -> None:
    release = {"exists": True, "type": "directory", "files": {"launch.json": FILE}}
    state = parse(document(gang={"current": f"releases/{A}", "releases": {A: release}}))
    assert state.current_release == A
    found = state.release(A)
    assert found is not None and found.files["launch.json"].mode == "0644"
    assert state.release(B) is None


def test_a_snapshot_is_found_by_what_was_asked_and_by_its_commit() -> None:
    entries = {"config.json": {"size": 2}}
    state = parse(document(snapshots=[{**SNAPSHOT, "entries": entries}]))
    found = state.snapshot("a/b")
    assert found is not None and found.complete
    assert state.snapshot("a/b", "c0ffee") == found
    assert state.snapshot("a/b", "other") is None and state.snapshot("b/b") is None


def test_a_snapshot_that_is_empty_or_lacks_a_file_is_not_complete() -> None:
    lacking = {**SNAPSHOT, "entries": {"x": {"size": None}}, "missing": ["x"]}
    state = parse(document(snapshots=[lacking, {**SNAPSHOT, "repo": "e/e"}]))
    for repo in ("a/b", "e/e"):
        found = state.snapshot(repo)
        assert found is not None and not found.complete


def test_one_file_system_for_both_folders_means_hard_links_are_possible() -> None:
    def disks(one: int, other: int) -> NodeState:
        space = {"total": 2, "free": 1}
        values = {"/tmp": {**space, "device": one}, "/var/tmp": {**space, "device": other}}
        return parse(document(disks=values))

    assert disks(1, 1).tmp_is_one_device
    assert not disks(1, 2).tmp_is_one_device


def test_an_address_is_looked_for_on_every_interface() -> None:
    links = [{"name": "lo"}, {"name": "f0", "addresses": ["10.0.0.1", "fe80::1"]}]
    state = parse(document(interfaces=links))
    assert state.has_address("10.0.0.1") and not state.has_address("10.0.0.2")


def test_the_state_can_not_be_changed() -> None:
    with pytest.raises(ValidationError):
        NodeState().query = Query()  # type: ignore[misc]


def test_a_query_follows_its_gang_and_refuses_unknown_keys() -> None:
    query = Query(gang="blue")
    assert query.unit == "vllm-blue.service"
    assert query.status_path == "/run/pyinfra-vllm/blue/status.json"
    assert Query(unit="other.service").unit == "other.service"
    with pytest.raises(ValidationError):
        Query(port=8000)  # type: ignore[call-arg]


def test_the_script_is_constant_but_for_its_query() -> None:
    one = script(Query(gang="a", snapshots=(SnapshotQuery(hub="/h", repo="a/'\"\\b"),)))
    two = script(Query(gang="b"))
    assert one.splitlines()[1:] == two.splitlines()[1:]
    compile(one, "script", "exec")


def test_the_script_carries_every_module_that_its_modules_import() -> None:
    """A module that is not sent would be found in the checkout and missing on a node."""
    folder = Path(collect.__path__[0])
    assert {path.stem for path in folder.glob("*.py")} == {*MODULES, "__init__"}
    sent: set[str] = set()
    for package, name in [
        *((AGENT, name) for name in NAMES + JUDGES),
        *((COLLECT, n) for n in MODULES),
    ]:
        source = (resources.files(package) / f"{name}.py").read_text()
        for node in ast.walk(ast.parse(source)):
            for module in imported(node):
                top = module.partition(".")[0]
                assert top in sys.stdlib_module_names or module in sent, f"{name}: {module}"
        sent |= {package, f"{package}.{name}"}


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.level:
        names = [node.module] if node.module else [alias.name for alias in node.names]
        return [f"{AGENT}.{name}" for name in names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


# Recorded on nodes of the lab: the head while it served, a worker, a node before its first deploy;
# and on a machine with an H200, without docker, systemd and RDMA.


def recorded(name: str) -> NodeState:
    return parse((Path(__file__).parent / "data" / f"node_state_{name}.json").read_text())


def test_a_serving_node_is_understood_whole() -> None:
    state = recorded("head_serving")
    assert state.failures() == {}
    container = state.container("vllm-main")
    assert container is not None and container.running and container.ours
    assert container.uses_api_port
    release = container.labels["pyinfra-vllm.release"]
    assert state.current_release == release and state.release(release) is not None
    image = state.image_of(container.labels["pyinfra-vllm.build"])
    assert image is not None and image.id == container.image
    (listener,) = (item for item in state.listeners.required if item.port == 8000)
    assert listener.container == container.name
    status = state.agent.required.status
    assert status is not None and (status.phase, status.rank) == ("serving", 0)
    assert state.unit.required.is_active and state.unit.required.is_enabled
    snapshot = state.snapshot("tiny-random/llama-tp4")
    assert snapshot is not None and snapshot.complete


def test_the_hard_link_of_a_worker_is_the_inode_of_its_copy() -> None:
    state = recorded("worker")
    (path,) = state.query.local_files
    local = state.local_file(path)
    composed = state.composed_directory("/tmp/composed-models/main")
    assert local is not None and local.links >= 2 and composed is not None
    entry = composed.entries[f"{state.current_release}/{Path(path).name}"]
    assert (entry.type, entry.inode, entry.device) == ("file", local.inode, local.device)


def test_a_node_before_its_first_deploy_is_understood() -> None:
    state = recorded("fresh")
    assert state.failures() == {}
    assert not state.unit.required.exists and state.container("vllm-main") is None
    assert state.current_release is None and state.agent.required.sha256 is None
    assert state.tmp_is_one_device


def test_a_machine_with_a_gpu_and_nothing_else_of_a_node_says_what_it_lacks() -> None:
    state = recorded("h200")
    assert state.failures() == {
        "docker": "docker: not installed",
        "images": "docker: not installed",
        "containers": "docker: not installed",
        "unit": "systemd: not installed",
    }
    gpus = state.gpus.required
    (device,) = gpus.devices
    assert (gpus.driver, gpus.cuda) == ("580.159.04", "13.0")
    assert (device.name, device.capability) == ("NVIDIA H200", "9.0")
    assert not state.rdma.required.ports
