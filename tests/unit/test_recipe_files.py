from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyinfra_vllm.recipe import load
from recipe_files import WHERE, Write, message, writer

COMPOSED = """
[composed_model]
mount = "/model"
[[composed_model.sources]]
repo = "-/name"
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    return writer(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = [1,\nc", "3:1: not TOML: Invalid value"),
        ('engine = "vllm', "1:15: not TOML: Unterminated string"),
        ("a = 1\n\nb c = 2\n", "3:3: not TOML: Expected '=' after a key in a key/value pair"),
        ("", ' engine: missing: The engine; "vllm" is the only one.'),
    ],
)
def test_toml_mistake_says_file_line_and_column(text: str, said: str, write: Write) -> None:
    path = write()
    path.write_text(text)
    assert message(path).splitlines()[0] == f"{WHERE}:{said}"


def test_file_that_is_not_utf8_is_said_with_its_line(write: Write) -> None:
    path = write()
    path.write_bytes(b'a = "x"\nb = "\xff"\n')
    assert message(path) == f"{WHERE}:2: isn't UTF-8; save the file as UTF-8"


def test_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write) -> None:
    path = write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load(path).name == "A name"


def test_file_that_is_not_there_is_said(write: Write) -> None:
    path = write().parent / "other.toml"
    assert message(path) == "recipes/x/other.toml: can't be read: No such file or directory"


def test_file_outside_the_working_directory_is_shown_whole(write: Write, tmp_path: Path) -> None:
    path = write(zzzz="1")
    os.chdir(tmp_path / "recipes" / "x")
    assert message(path).startswith("recipe.toml: zzzz: ")
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    assert message(path).startswith(f"{path}: zzzz: ")


def test_everything_wrong_in_a_file_is_said_at_once(write: Write) -> None:
    path = write(COMPOSED, name="1", args='["--nnodes", 2]', nmae='"x"')
    assert message(path).splitlines() == [
        f"{WHERE}: name: expected text, got the number 1; write it in quotes",
        f"{WHERE}: args[0]: --nnodes is set by the launcher: "
        "the number of nodes is the key required_nodes",
        f"{WHERE}: args[1]: expected text, got the number 2; write it in quotes",
        f"{WHERE}: composed_model.sources[0].repo: expected a Hugging Face repository such as "
        'org/name, got "-/name"',
        f"{WHERE}: nmae: unknown key; did you mean name?",
    ]


def test_all_contradictions_are_said_at_once(write: Write) -> None:
    path = write(required_nodes="4", build_profile='"x"', args='["-tp", "4"]')
    assert [line.split(": ")[1] for line in message(path).splitlines()] == [
        "build_profile",
        "required_nodes",
        "args[0]",
    ]
