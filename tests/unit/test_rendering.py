"""Templates are filled in, or say what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.rendering import render


@pytest.fixture(autouse=True)
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "templates"
    folder.mkdir()
    return folder


def test_values_are_filled_in_and_the_last_newline_is_kept(templates: Path) -> None:
    (templates / "a.j2").write_text("Hello {{ name }}\n")
    assert render("a.j2", name="<you>") == "Hello <you>\n"


def test_a_word_is_quoted_for_a_shell(templates: Path) -> None:
    (templates / "a.j2").write_text("echo {{ word|shell }}")
    assert render("a.j2", word="it's $5") == "echo 'it'\"'\"'s $5'"


def test_a_template_of_the_working_directory_wins(templates: Path) -> None:
    (templates / "images" / "vllm-cpu").mkdir(parents=True)
    (templates / "images" / "vllm-cpu" / "Dockerfile.j2").write_text("FROM mine\n")
    assert render("images/vllm-cpu/Dockerfile.j2") == "FROM mine\n"


def test_a_template_that_changed_is_read_again(templates: Path) -> None:
    (templates / "a.j2").write_text("one")
    assert render("a.j2") == "one"
    (templates / "a.j2").write_text("other")
    assert render("a.j2") == "other"


def test_a_value_that_nobody_gave_is_an_error_with_its_line(templates: Path) -> None:
    (templates / "a.j2").write_text("one\ntwo {{ missing }}\n")
    with pytest.raises(UserError, match=r"templates/a\.j2:2: 'missing' is undefined"):
        render("a.j2")


def test_a_mistake_in_a_template_is_named_with_its_line(templates: Path) -> None:
    (templates / "a.j2").write_text("one\n{% if %}\n")
    with pytest.raises(UserError, match=r"templates/a\.j2:2: "):
        render("a.j2")


def test_a_template_that_is_not_there_is_answered_with_the_nearest(templates: Path) -> None:
    (templates / "serve.env.j2").write_text("")
    with pytest.raises(UserError, match=r"no such template; did you mean serve\.env\.j2\?"):
        render("serve.env.js")
