"""The plan of a composed model."""

from __future__ import annotations

import pytest

from agent_model import manifest_of
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.errors import Unmet
from pyinfra_vllm.agent.links import Link, parse, plan_links, replaced


def test_whole_snapshot_is_symlinked_and_local_files_are_hard_links_that_win() -> None:
    manifest = manifest_of("/s", local_files=("/var/tmp/two",))
    plan = plan_links(manifest, {"/s": ["two", "config.json", "sub/tokenizer.json"]})
    assert plan == {
        "config.json": Link("symbolic", "/s/config.json"),
        "sub/tokenizer.json": Link("symbolic", "/s/sub/tokenizer.json"),
        "two": Link("hard", "/var/tmp/two"),
    }


def test_plan_is_sorted_whatever_the_order_of_the_entries() -> None:
    assert list(plan_links(manifest_of("/s"), {"/s": ["b", "c", "a"]})) == ["a", "b", "c"]


def test_entry_of_two_sources_is_refused_and_both_are_named() -> None:
    with pytest.raises(Unmet, match=r"README.md is in org/s and in org/t"):
        plan_links(manifest_of("/s", "/t"), {"/s": ["README.md"], "/t": ["README.md"]})


def test_source_that_overrides_wins_over_those_before_it() -> None:
    manifest = manifest_of("/s", "/t")
    manifest["sources"][1]["override"] = True
    plan = plan_links(manifest, {"/s": ["README.md", "a"], "/t": ["README.md"]})
    assert plan["README.md"] == Link("symbolic", "/t/README.md")
    assert plan["a"] == Link("symbolic", "/s/a")


def test_override_of_the_earlier_source_doesn_t_help_the_later() -> None:
    manifest = manifest_of("/s", "/t")
    manifest["sources"][0]["override"] = True
    with pytest.raises(Unmet, match="override = true at the source org/t"):
        plan_links(manifest, {"/s": ["README.md"], "/t": ["README.md"]})


def test_local_file_that_may_be_copied_is_a_copy_in_the_plan() -> None:
    manifest = manifest_of("/s", local_files=("/var/tmp/two",))
    manifest["local_files"][0]["copy"] = True
    assert plan_links(manifest, {"/s": []})["two"] == Link("copy", "/var/tmp/two")


def test_what_a_local_file_replaces_is_the_entry_of_the_last_source() -> None:
    document = manifest_of("/s", "/t", local_files=("/l/a", "/l/b"))
    manifest = parse(Document("model.manifest", document))
    behind = replaced(manifest, {"/s": ["a"], "/t": ["a", "c"]})
    assert behind == {"a": "/t/a", "b": None}


@pytest.mark.parametrize("entry", ["../x", "/etc/passwd", "a/../../x", "", "a//b", "./x"])
def test_entry_that_would_leave_the_directory_is_refused(entry: str) -> None:
    with pytest.raises(Unmet, match="would leave"):
        plan_links(manifest_of("/s"), {"/s": [entry]})


@pytest.mark.parametrize("name", ["..", "a/b", ""])
def test_local_file_name_that_would_leave_the_directory_is_refused(name: str) -> None:
    manifest = manifest_of("/s")
    manifest["local_files"] = [{"host": "/var/tmp/x", "name": name}]
    with pytest.raises(Unmet):
        plan_links(manifest, {"/s": ["config.json"]})


def test_two_local_files_of_one_name_are_refused() -> None:
    manifest = manifest_of("/s", local_files=("/a/x", "/b/x"))
    with pytest.raises(Unmet, match="/a/x and /b/x have one name"):
        plan_links(manifest, {"/s": []})


def test_file_where_another_source_needs_a_folder_is_refused() -> None:
    with pytest.raises(Unmet, match="sub is a file, and sub/x needs it"):
        plan_links(manifest_of("/s", "/t"), {"/s": ["sub"], "/t": ["sub/x"]})
