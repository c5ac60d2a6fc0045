"""The plan as a document: exit codes, verdict, text, Markdown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyinfra_vllm import plan_text
from pyinfra_vllm.consequences import OPERATIONS, of
from pyinfra_vllm.facts import told
from pyinfra_vllm.plan import Change, Found, GangPlan, Line, Outage, Plan, together

DIGEST, OLD = "a" * 64, "b" * 64


def change(key: str = "unit.installed", *nodes: str, lines: tuple[Line, ...] = ()) -> Change:
    return Change(operation=key, key=key, consequence=of(key), nodes=nodes or ("n0",), lines=lines)


def plan(*changes: Change, unknown: dict[str, str] | None = None, **gang: Any) -> Plan:
    about = {"gang": "main", "recipe": "r", "release": DIGEST, "wanted": OLD, **gang}
    found = GangPlan(**about, changes=changes)
    return Plan(schema=1, inventory="i.py", recipe="r", gangs=(found,), unknown=unknown or {})


@pytest.mark.parametrize(
    ("found", "code", "verdict"),
    [
        (plan(), 0, "nothing to do"),
        (plan(change("ready.ready")), 0, "nothing to do"),
        (plan(change("unit.installed", "n0", "n1")), 2, "1 change on 2 nodes"),
        (plan(change("release.staged")), 2, "1 change on 1 node"),
        (plan(unknown={"n3": "off"}), 1, "unknown: n3"),
        (plan(change(), unknown={"n3": "off"}), 1, "1 change on 1 node; unknown: n3"),
        (plan(error="no"), 1, "a deploy refuses"),
        (Plan(schema=1, inventory="i.py", recipe="r"), 1, "nothing to do"),
    ],
)
def test_the_exit_code_says_nothing_changes_or_error(found: Plan, code: int, verdict: str) -> None:
    assert found.exit_code == code
    assert found.verdict == verdict
    assert plan_text.text(found).splitlines()[-1] == verdict


def test_a_plan_says_which_nodes_it_is_for_and_what_it_was_limited_to() -> None:
    found = plan(nodes=("n1", "n2")).model_copy(update={"limit": ("n1", "n2")})
    text, markdown = plan_text.text(found), plan_text.markdown(found)
    assert text.splitlines()[1] == "planned for n1, n2"
    assert text.splitlines()[-1].endswith("nothing was looked for beyond --limit n1,n2")
    assert "--limit n1,n2" in markdown.splitlines()[0]
    assert "planned for n1, n2" in markdown
    document = json.loads(found.model_dump_json(by_alias=True))
    assert document["limit"] == document["gangs"][0]["nodes"] == ["n1", "n2"]


def test_a_release_that_can_not_be_computed_is_not_called_none() -> None:
    found = plan(release=None, state="serving since 02:14", error="recipe r99: no such recipe")
    headline = "gang main, serving since 02:14: what the recipe would make of it can't be told"
    assert plan_text.text(found).splitlines()[0] == headline
    assert "no release" not in plan_text.text(found) + plan_text.markdown(found)


def test_an_operation_that_nobody_judged_is_not_called_harmless() -> None:
    assert of("new.operation") == "restart"


def test_equal_changes_of_several_nodes_are_one() -> None:
    same = Line(kind="text", text="Will enable it")
    joined = together(
        [
            change("unit.installed", "n0", lines=(same,)),
            change("unit.installed", "n1", lines=(same,)),
            change("unit.installed", "n2"),
        ]
    )
    assert [found.nodes for found in joined] == [("n0", "n1"), ("n2",)]


def test_the_text_groups_by_consequence_and_names_the_price() -> None:
    found = plan(
        change("unit.installed"),
        change("gang.started"),
        change("release.staged"),
        outage=Outage(seconds=41.7, source="the last start"),
        findings=(
            Found(status="warn", check="swap", node="n0", sentence="n0: it swaps"),
            Found(status="warn", check="swap", node="n1", sentence="n1: it swaps"),
            Found(status="ok", check="root", node="n0", sentence="n0: root"),
        ),
    )
    text = plan_text.text(found)
    order = ["restarts the gang", "changes without restart", "only staging", "preflight: 1 ok"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "restarts the gang, about 42 s without service (the last start):" in text
    assert "release bbbbbbbbbbbb -> aaaaaaaaaaaa" in text
    assert "  warn    swap               n0, n1: it swaps" in text


def test_a_diff_of_a_file_names_it_once_and_a_new_file_is_counted() -> None:
    assert told.diff("/a", "x\n", "y\n").splitlines() == [
        "--- /a (changed)", "@@ -1 +1 @@", "-x", "+y",
    ]  # fmt: skip
    assert told.diff("/a", None, "y\nz\n") == "--- /a (new, 2 lines)"
    assert "compared with" in told.diff("/a", None, "y\n", "x\n").splitlines()[0]


def test_markdown_fits_a_comment_and_no_file_ends_its_fence() -> None:
    long = told.diff("/etc/x", "", "".join(f"```{n} {'x' * 90}\n" for n in range(3000)))
    changes = [change(f"op{n}", f"n{n}", lines=(Line(kind="diff", text=long),)) for n in range(40)]
    found = plan_text.markdown(plan(*changes))
    assert len(found) <= plan_text.LIMIT < 65536
    short = plan_text.markdown(
        plan(change("unit.installed", lines=(Line(kind="diff", text=long),)))
    )
    assert short.count("```") == 2
    assert "lines more" in short
    assert short.startswith("### r: 1 change on 1 node")


def test_the_document_has_a_version_and_comes_back() -> None:
    found = plan(change(), unknown={"n3": "off"})
    document = json.loads(found.model_dump_json(by_alias=True))
    assert document["schema"] == 1
    assert Plan.model_validate(document) == found


def test_every_consequence_in_the_table_has_a_title() -> None:
    assert set(OPERATIONS.values()) == set(plan_text.TITLES)
