from __future__ import annotations

from pathlib import Path

import pytest

from recipe_files import WHERE, Write, message, writer


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    return writer(tmp_path)


COMPOSED = """
[composed_model]
mount = "/model"
[[composed_model.sources]]
repo = "org/name"
"""

WRONG_COMPOSED = {
    "unknown": (
        COMPOSED + 'revison = "main"',
        "composed_model.sources[0].revison: unknown key; did you mean revision?",
    ),
    "recipe_key_too_low": (
        COMPOSED + "start_timeout = 60",
        "composed_model.sources[0].start_timeout: unknown key in composed_model.sources[0]; "
        "start_timeout belongs above the first [table] of the file",
    ),
    "wrong_type": (
        COMPOSED.replace('"org/name"', "true"),
        "composed_model.sources[0].repo: expected text, got true; write it in quotes",
    ),
    "repo_url": (
        COMPOSED.replace("org/name", "https://hf/x"),
        "composed_model.sources[0].repo: expected a Hugging Face repository such as org/name, "
        'got "https://hf/x"',
    ),
    "revision_outside": (
        COMPOSED + 'revision = "../x"',
        'composed_model.sources[0].revision: expected a commit, a tag or a branch, got "../x"',
    ),
    "one_bracket": (
        COMPOSED.replace("[[", "[").replace("]]", "]"),
        "composed_model.sources: expected a list, got a table; "
        "write [[composed_model.sources]], with two brackets",
    ),
    "two_brackets": (
        '[[composed_model]]\nmount = "/model"',
        "composed_model: expected a table, got a list; write [composed_model], with one bracket",
    ),
    "texts": (
        '[composed_model]\nmount = "/model"\nsources = ["org/name"]',
        'composed_model.sources[0]: expected a table, got "org/name"; '
        "write one [[composed_model.sources]] table for each",
    ),
    "no_sources": (
        '[composed_model]\nmount = "/model"',
        "composed_model.sources: missing: Repositories whose whole snapshots are linked, "
        "in this order; at least one.",
    ),
    "empty_sources": (
        '[composed_model]\nmount = "/model"\nsources = []',
        "composed_model.sources: expected at least one source, got none",
    ),
    "source_twice": (
        COMPOSED + '[[composed_model.sources]]\nrepo = "org/name"',
        "composed_model.sources[1].repo: org/name is already sources[0]",
    ),
    "relative_mount": (
        COMPOSED.replace("/model", "model"),
        'composed_model.mount: expected an absolute path, got "model"',
    ),
    "root_mount": (
        COMPOSED.replace("/model", "/"),
        'composed_model.mount: expected the plain path of a file or folder, got "/"',
    ),
    "untidy_mount": (
        COMPOSED.replace("/model", "/a/../model/"),
        "composed_model.mount: expected the plain path of a file or folder, "
        'got "/a/../model/"; write /model',
    ),
    "comma": (
        COMPOSED.replace("/model", "/a,b"),
        'composed_model.mount: expected a path without , : " and control characters, got "/a,b"',
    ),
    "one_name_twice": (
        COMPOSED + '[[composed_model.local_files]]\nhost = "/a/w.bin"\n'
        '[[composed_model.local_files]]\nhost = "/b/w.bin"',
        "composed_model.local_files[1].host: the name w.bin is already taken by local_files[0]",
    ),
}


@pytest.mark.parametrize("case", WRONG_COMPOSED)
def test_wrong_composed_model_is_said_with_its_key_path(case: str, write: Write) -> None:
    tail, said = WRONG_COMPOSED[case]
    assert message(write(tail)) == f"{WHERE}: {said}"
