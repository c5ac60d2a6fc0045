"""What ``wanted.json`` asks for, what it can go back to, and which releases are kept for that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyinfra_vllm import goal, going_back, pruning
from pyinfra_vllm.agent import paths
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node import NodeState
from pyinfra_vllm.starts import EARLIER, Order, Wish, next_wish, wish
from unit import gangs

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
TRIAL = {"trial": {"seconds": 60}}


def head(wanted: dict[str, Any] | None, passed: str = "") -> NodeState:
    text = json.dumps(wanted) if wanted is not None else "{"
    file = {"exists": True, "type": "file", "text": text, "mode": "0644", "owner": "root"}
    values = {
        "agent": {"status": {"pid": 1, "gang": "main", "passed": passed}},
        "files": {paths.wanted("main"): file},
    }
    parts = {name: {"ok": True, "value": value} for name, value in values.items()}
    return NodeState.model_validate({"schema": 1, **parts})


def asked(digest: str, found: NodeState, order: Order = Order(60)) -> dict[str, Any]:  # noqa: B008
    document: dict[str, Any] = json.loads(next_wish("main", digest, found, order))
    return document


def test_first_wish_has_nothing_to_go_back_to() -> None:
    document = asked(A, head(None))
    assert (document["previous"], document["earlier"], document["switch"]) == (None, [], 1)
    assert document["trial"] == {"seconds": 60} and document["lease"] is None


def test_what_has_served_is_gone_back_to() -> None:
    now = {"release": A, "previous": C, "earlier": [D], "switch": 7, **TRIAL}
    document = asked(B, head(now, passed=A))
    assert (document["previous"], document["earlier"]) == (A, [C, D])
    assert document["switch"] == 8


def test_what_has_not_served_yet_is_not_gone_back_to() -> None:
    now = {"release": B, "previous": A, "earlier": [D], "switch": 7, **TRIAL}
    document = asked(C, head(now, passed=A))
    assert (document["previous"], document["earlier"]) == (A, [D])
    first = {"release": B, "previous": None, "switch": 1, **TRIAL}
    assert asked(C, head(first))["previous"] is None


def test_a_wish_of_an_older_deploy_counts_as_served() -> None:
    old = {"schema": 1, "release": A, "previous": None, "deadline": None, "switch": 1}
    assert asked(B, head(old))["previous"] == A


def test_asking_again_keeps_what_is_behind() -> None:
    now = {"release": A, "previous": C, "earlier": [D], "switch": 7, **TRIAL}
    document = asked(A, head(now, passed=A))
    assert (document["previous"], document["earlier"]) == (C, [D])


def test_going_back_and_forth_names_nothing_twice_and_the_list_is_bounded() -> None:
    now = {"release": A, "previous": B, "earlier": [C, A, D], "switch": 7, **TRIAL}
    document = asked(B, head(now, passed=A))
    assert (document["previous"], document["earlier"]) == (A, [C, D])
    many = [f"{number:064x}" for number in range(20)]
    now["earlier"] = many
    assert len(asked(B, head(now, passed=A))["earlier"]) == EARLIER


@pytest.mark.parametrize("text", ["[]", '{"switch": "x"}', "nothing"])
def test_a_broken_wish_is_none(text: str) -> None:
    found = head(None)
    found.files.required[paths.wanted("main")].__dict__["text"] = text
    assert wish("main", found).release is None


def test_the_order_says_who_asks_for_what() -> None:
    release = gangs.release()
    found = goal.of_release(release)
    order = found.order("trial", {"who": "me@here"}, lease=60)
    document = asked(release.digest, head(None), order)
    assert (document["kind"], document["by"], document["lease"]) == (
        "trial",
        {"who": "me@here"},
        60,
    )
    assert document["recipe"] == "tiny-cpu-4x" and document["image"]["build"] == gangs.BUILD
    assert document["trial"]["seconds"] == release.content.recipe.start_timeout
    assert goal.of_release(release, 5).seconds == 5


def launch(release: str, rank: int = 0, build: str | None = gangs.BUILD) -> dict[str, Any]:
    text = gangs.release().files(gangs.spark(rank))["launch.json"]
    document = json.loads(text) | {"release": release}
    document["image"]["build"] = build
    return {"exists": True, "type": "file", "text": json.dumps(document), "mode": "0644"}


def node(
    rank: int,
    releases: dict[str, float],
    wanted: dict[str, Any] | None = None,
    current: str | None = None,
    build: str | None = gangs.BUILD,
    has_image: bool = True,
) -> NodeState:
    """``releases``: digest -> when it was laid."""
    there = {
        digest: {
            "exists": True, "type": "directory", "modified": at,
            "files": {paths.LAUNCH: launch(digest, rank, build)},
        }
        for digest, at in releases.items()
    }  # fmt: skip
    known = head(wanted or {})
    image = {"id": "i", "build": build, "tags": ["pyinfra-vllm-lab/vllm-cpu:1"]}
    image["tags"] = [json.loads(str(launch(A)["text"]))["image"]["tag"]]
    parts = {
        "gang": {"current": f"releases/{current}" if current else None, "releases": there},
        "containers": [],
        "images": [image] if has_image else [],
        "files": {name: found.model_dump() for name, found in known.files.required.items()},
    }
    values = {name: {"ok": True, "value": value} for name, value in parts.items()}
    return NodeState.model_validate({"schema": 1, **values})


def states(**keys: Any) -> dict[str, NodeState]:
    wanted = {"release": A, "previous": B, "earlier": [C], "switch": 3}
    laid = {A: 1.0, B: 2.0, C: 3.0}
    return {
        f"spark-{rank}": node(rank, laid, wanted, **(keys if rank == 2 else {}))
        for rank in range(4)
    }


def test_previous_is_chosen_unless_another_is_named() -> None:
    gang = gangs.sparks(4)
    assert going_back.choose(gang, states(), None).goal.release == B
    chosen = going_back.choose(gang, states(), "CCCC", 9)
    assert (chosen.goal.release, chosen.goal.seconds, chosen.instead_of) == (C, 9, A)
    assert chosen.goal.nodes == ("spark-0", "spark-1", "spark-2", "spark-3")


def test_what_cannot_be_gone_back_to_is_refused_in_a_sentence() -> None:
    gang = gangs.sparks(4)
    with pytest.raises(UserError, match="no release begins with f; on spark-0 are: "):
        going_back.choose(gang, states(), "f")
    with pytest.raises(UserError, match="spark-2: release bbbbbbbbbbbb is not there"):
        going_back.choose(gang, states() | {"spark-2": node(2, {A: 1.0})}, None)
    with pytest.raises(UserError, match=r"spark-2: the image .* of release bbbbbbbbbbbb is gone"):
        going_back.choose(gang, states(has_image=False), None)
    moved = states() | {"spark-2": node(1, {A: 1.0, B: 2.0, C: 3.0})}
    with pytest.raises(UserError, match="spark-2: is rank 2, and was rank 1 in release bbbbbbbb"):
        going_back.choose(gang, moved, None)
    lost = {name: state for name, state in states().items() if name != "spark-3"}
    with pytest.raises(UserError, match="spark-3: can't be reached"):
        going_back.choose(gang, lost, None)
    first = states() | {"spark-0": node(0, {A: 1.0}, {"release": A, "previous": None})}
    with pytest.raises(UserError, match="no release served before the present one"):
        going_back.choose(gang, first, None)


def test_images_without_a_build_digest_are_looked_for_by_their_tag() -> None:
    found = states(build=None)
    (tag,) = going_back.tags(found)
    assert ":" in tag
    assert going_back.choose(gangs.sparks(4), found, None).goal.release == B
    with pytest.raises(UserError, match="is gone"):
        going_back.choose(gangs.sparks(4), states(build=None, has_image=False), None)


def test_releases_in_use_and_the_newest_are_kept() -> None:
    release = gangs.release()
    wanted = {"release": release.digest, "previous": A, "earlier": [B], "switch": 3}
    old = {f"{number:064x}": float(number) for number in range(1, 7)}
    laid = {release.digest: 0.0, A: 0.0, B: 0.0, **old}
    found = {
        f"spark-{rank}": node(rank, laid, wanted, current=f"{1:064x}" if rank == 1 else None)
        for rank in range(4)
    }
    removed = pruning.old_releases(release, found)
    kept = {f"{number:064x}" for number in (5, 6)}
    assert set(removed["spark-0"]) == set(old) - kept
    assert set(removed["spark-1"]) == set(old) - kept - {f"{1:064x}"}
    left = {digest: laid[digest] for digest in laid if digest not in removed["spark-0"]}
    again = {name: node(0, left, wanted) for name in found}
    assert not any(pruning.old_releases(release, again).values())
    del found["spark-0"]
    assert pruning.old_releases(release, found) == {}


@pytest.mark.parametrize(
    "broken",
    [
        {"release": 5},
        {"release": ["a"]},
        {"release": A, "previous": ["y"]},
        {"release": A, "earlier": [["x"]]},
        {"release": A, "switch": float("inf")},
        {"release": A, "schema": 2},
    ],
)
def test_a_wish_that_somebody_wrote_by_hand_is_none(broken: dict[str, Any]) -> None:
    assert wish("main", head(broken)) == Wish(None, None, 0)
