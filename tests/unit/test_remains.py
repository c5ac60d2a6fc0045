"""What a teardown takes off a node, and what it leaves there."""

from __future__ import annotations

from typing import Any

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.remains import has, query_of, remains

GANG_FILES = {
    "/etc/systemd/system/vllm-main.service",
    "/var/lib/pyinfra-vllm/main",
    "/tmp/composed-models/main",
    "/run/pyinfra-vllm/main",
}


def container(name: str, **labels: str) -> dict[str, Any]:
    return {
        "id": f"id-{name}", "name": name, "image": "sha256:1", "ours": bool(labels),
        "labels": labels, "state": "exited", "exit_code": 0, "pid": 0,
    }  # fmt: skip


def node(
    gangs: tuple[str, ...] = ("main",), local: tuple[str, ...] = (), there: bool = True
) -> NodeState:
    """A node where all files of the gang ``main`` are there, or none is."""

    def part(value: Any) -> dict[str, Any]:
        return {"ok": True, "value": value}

    unit = "loaded" if there else "not-found"
    of_ours = [container("vllm-main", **{paths.LABEL_GANG: "main"})] if there else []
    others = [container("vllm-b", **{paths.LABEL_GANG: "b"}), container("vllm-main-2")]
    every = query_of("main").files
    return NodeState.model_validate({
        "schema": 1,
        "leftovers": part({"gangs": list(gangs) if there else []}),
        "files": part({path: {"exists": there, "type": "file"} for path in every}),
        "local_files": part({
            path: {"exists": path in local, "type": "directory"}
            for path in (paths.ENGRAM_ROOT, paths.CACHE_ROOT)
        }),
        "containers": part([*of_ours, *others]),
        "unit": part({
            "load": unit, "active": "inactive", "sub": "dead", "enabled": "", "path": "",
        }),
    })  # fmt: skip


def test_the_last_gang_takes_the_agent_and_the_rules_with_it() -> None:
    found = remains("main", node())
    assert set(found.paths) == GANG_FILES | {paths.AGENT, paths.TMPFILES, paths.ENGRAM_PLAN}
    assert found.containers == {"vllm-main": "id-vllm-main"}, "by label, never by name"
    assert found.unit and not found.kept


def test_another_gang_keeps_them() -> None:
    found = remains("main", node(("main", "b")))
    assert set(found.paths) == GANG_FILES
    assert found.kept == (f"{paths.AGENT} and {paths.TMPFILES}: gang b needs them",)


def test_copies_of_tables_stay_and_are_kept_from_ageing() -> None:
    found = remains("main", node(local=(paths.ENGRAM_ROOT,)))
    assert paths.TMPFILES not in found.paths and paths.AGENT in found.paths
    assert "keeps ageing away" in found.kept[0]
    assert not any(path.startswith(paths.ENGRAM_ROOT) for path in found.paths)


def test_caches_go_with_the_images() -> None:
    there = node(local=(paths.CACHE_ROOT,))
    assert paths.CACHE_ROOT not in remains("main", there).paths
    assert paths.CACHE_ROOT in remains("main", there, images=True).paths
    both = node(("main", "b"), local=(paths.CACHE_ROOT,))
    assert paths.CACHE_ROOT not in remains("main", both, images=True).paths


def test_nothing_remains_the_second_time() -> None:
    assert not remains("main", node(there=False, local=(paths.ENGRAM_ROOT,)))


def test_a_gang_that_nobody_has_heard_of_is_on_no_node() -> None:
    assert has("main", node()) and has("b", node())
    gone = node(there=False)
    assert not has("main", gone)
    path = "/run/pyinfra-vllm/main"
    files = {**gone.model_dump()["files"]["value"], path: {"exists": True, "type": "directory"}}
    left = {**gone.model_dump(by_alias=True), "files": {"ok": True, "value": files}}
    assert has("main", NodeState.model_validate(left))
