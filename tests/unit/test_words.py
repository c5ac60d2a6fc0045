from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_vllm import words


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("""'{"image":2}'""", '{"image":2}'),
        ("""\n '{"a b":"c"}' \n""", '{"a b":"c"}'),
        ('"a\\"b"', 'a"b'),
        ("'it'\\''s'", "it's"),
        ("''", ""),
        ("'a' 'b'", "'a' 'b'"),
        ("'a", "'a"),
        ("'a\"", "'a\""),
        ("'", "'"),
        ("a'b'", "a'b'"),
        (" plain ", " plain "),
        ("", ""),
        ('{"a":"b"}', '{"a":"b"}'),
        ("$HOME %d \\n", "$HOME %d \\n"),
    ],
)
def test_only_a_word_that_is_one_quoted_word_loses_its_quotes(word: str, read: str) -> None:
    assert words.unquote(word) == read


@given(st.text())
def test_text_in_shell_quotes_arrives_as_the_text(text: str) -> None:
    quoted = "'" + text.replace("'", "'\\''") + "'"
    assert words.unquote(quoted) == text


@given(st.text().filter(lambda text: not text.strip().startswith(("'", '"'))))
def test_text_without_quotes_arrives_byte_for_byte(text: str) -> None:
    assert words.unquote(text) == text


@pytest.mark.parametrize(
    "image",
    [
        "vllm-cpu:lab",
        "jovian-r37-ds41:local",
        "ghcr.io/org/name:v1.2",
        "127.0.0.1:5000/a/b_c@sha256:" + "a" * 64,
    ],
)
def test_images_as_docker_names_them_are_taken(image: str) -> None:
    assert words.image(image) == image


@pytest.mark.parametrize("size", ["32gb", "32g", "32GiB", "1.5g", "1024", "64m"])
def test_amounts_as_docker_reads_them_are_taken(size: str) -> None:
    assert words.size(size) == size


@pytest.mark.parametrize("path", ["/model", "/mnt/model", "/root/model", "/models/a", "/libs"])
def test_model_is_mounted_in_a_folder_of_its_own(path: str) -> None:
    assert words.mount(path) == path


@pytest.mark.parametrize(
    "path", ["/etc", "/usr/lib/model", "/root", "/root/.cache", "/root/.cache/vllm", "/proc"]
)
def test_model_is_mounted_over_nothing_that_is_in_use(path: str) -> None:
    with pytest.raises(ValueError, match="expected a folder of its own such as /model"):
        words.mount(path)
