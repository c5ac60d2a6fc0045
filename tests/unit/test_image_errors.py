"""Mistakes in what describes an image: one clear message each."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import build_of
from unit.images import PROFILE, TEMPLATE, plain, toy

SOURCE = '\n[[sources]]\nname = "a"\nrepository = "r"\ncommit = "todo"\ntree = "todo"\n'


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def message(image_dir: str = "toy", profile: str | None = "one") -> str:
    with pytest.raises(UserError) as caught:
        build_of(image_dir, profile, "toy:1")
    return str(caught.value)


def test_an_unknown_image_is_answered_with_the_nearest() -> None:
    assert "vllm-cpu?" in message("vllm-cpus")


def test_the_shared_files_are_no_image() -> None:
    assert "no such image" in message("shared")


def test_an_unknown_profile_is_answered_with_the_nearest() -> None:
    found = message("glm53-jovian-r27", "jovian-r37-ds4")
    assert "did you mean jovian-r37-ds41?" in found
    assert "glm53-jovian-r27/profiles/jovian-r37-ds4.toml" in found


def test_a_missing_profile_is_answered_with_the_names() -> None:
    assert "build_profile in the recipe to one of: vllm-cpu" in message("vllm-cpu", None)


def test_a_plain_dockerfile_takes_no_profile(tmp_path: Path) -> None:
    plain(tmp_path)
    assert "takes no profile" in message("plain", "one")


def test_a_directory_without_dockerfile_is_named(tmp_path: Path) -> None:
    (plain(tmp_path) / "Dockerfile").unlink()
    assert "has neither" in message("plain", None)


def test_a_directory_with_both_kinds_of_dockerfile_is_named(tmp_path: Path) -> None:
    (toy(tmp_path) / "Dockerfile").write_text("FROM scratch\n")
    assert "has both" in message()


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("colour = 1\n", "one.toml: colour: unknown key"),
        ("patchs = []\n", "did you mean patches?"),
        ("versions = {a = 1}\n", "versions.a: expected text, got the number 1; write it in quotes"),
        ("imports = 'vllm'\n", 'imports: expected a list, got "vllm"'),
        ("versions = {a = '>1'}\n", "expected one version"),
        ("[resources]\njob_gib = 0\n", "resources.job_gib"),
        ("compiled = ['vllm']\n", "compiled: templates/images/toy/Dockerfile.j2 uses none of it"),
        ("waived = ['torch']\n", "waived[0]: expected a distribution and what it declares, as"),
        ("[apt.biuld]\n", "apt.biuld: unknown key; did you mean build?"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, addition: str, expected: str) -> None:
    profile = PROFILE.replace('versions = {vllm = "1.0"}\n', "")
    place = profile + addition if addition.startswith("[") else addition + profile
    toy(tmp_path, place)
    assert expected in message()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("commit", "c687594b", "sources[0].commit: expected a full hash of 40 hex digits"),
        ("tree", "HEAD", 'or "todo" while unknown, got "HEAD"'),
        ("name", "a/b", "sources[0].name: expected a plain name"),
    ],
)
def test_a_hash_is_whole_or_todo(tmp_path: Path, key: str, value: str, expected: str) -> None:
    lines = [f'{key} = "{value}"' if x.startswith(key) else x for x in SOURCE.splitlines()]
    toy(tmp_path, PROFILE + "\n".join(lines))
    assert expected in message()


def test_two_sources_of_one_name_are_refused(tmp_path: Path) -> None:
    toy(tmp_path, PROFILE + SOURCE + SOURCE)
    assert 'sources[1].name: "a" is there twice' in message()


def test_a_source_that_the_dockerfile_never_fetches_is_refused(tmp_path: Path) -> None:
    toy(tmp_path, PROFILE + SOURCE)
    assert "toy/Dockerfile.j2 uses none of it" in message()


def test_a_key_that_shapes_nothing_is_refused(tmp_path: Path) -> None:
    toy(tmp_path, PROFILE + '\n[apt.build]\ngit = "1"\n')
    assert "one.toml: apt: " in message()


def test_limits_that_the_dockerfile_never_reads_are_refused(tmp_path: Path) -> None:
    toy(tmp_path, PROFILE + "\n[resources]\njob_gib = 4\n")
    assert "one.toml: resources: " in message()


def test_what_the_dockerfile_needs_and_the_profile_lacks_is_named(tmp_path: Path) -> None:
    toy(tmp_path, template=TEMPLATE + 'COPY --from={{ image("tools") }} / /\n')
    assert 'one.toml: images: the Dockerfile needs one with name = "tools"' in message()


def test_a_lock_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    toy(tmp_path, 'requirements = "notes.txt"\n' + PROFILE)
    found = message()
    assert "requirements: context/notes.txt doesn't exist" in found
    assert "did you mean note.txt?" in found


def test_a_profile_that_is_not_toml_is_named_with_line(tmp_path: Path) -> None:
    toy(tmp_path, "images = [\n")
    assert "one.toml:" in message()
