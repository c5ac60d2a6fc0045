"""What an image is built from, and its digest."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import LABEL, build_command, build_of, context_tar
from unit.images import PROFILE, TEMPLATE, plain, toy

GOLDEN = Path(__file__).parent / "golden"
SHIPPED = [
    ("vllm-cpu", "vllm-cpu"),
    ("glm53-jovian-r27", "jovian-r37-ds41"),
    ("glm53-jovian-r27", "jovian-r36-ds41"),
]


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def digest(tag: str = "toy:1") -> str:
    return build_of("toy", "one", tag).digest


@pytest.mark.parametrize(("image_dir", "profile"), SHIPPED)
def test_the_dockerfile_is_the_golden_one(image_dir: str, profile: str) -> None:
    rendered = build_of(image_dir, profile, "any:tag").files["Dockerfile"].decode()
    golden = GOLDEN / f"{profile}.Dockerfile"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_the_cpu_image_has_nothing_left_to_do() -> None:
    assert build_of("vllm-cpu", "vllm-cpu", "vllm-cpu:lab").missing == ()


def test_every_package_of_the_cpu_image_has_one_version_and_a_hash() -> None:
    lock = build_of("vllm-cpu", "vllm-cpu", "x:1").files["requirements.txt"].decode()
    entries = lock.replace("\\\n", "").splitlines()
    assert len(entries) > 100
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in lock


def test_an_image_with_unknown_facts_renders_and_refuses_to_build() -> None:
    build = build_of("glm53-jovian-r27", "jovian-r37-ds41", "jovian-r37-ds41:local")
    assert "images[devel].digest" in build.missing
    assert "sources[vllm].tree" in build.missing
    assert "sources[vllm].commit" not in build.missing
    assert "sources[lmcache].tree" not in build.missing
    assert "patches[2].sha256" in build.missing
    with pytest.raises(UserError) as refused:
        build_command(build)
    assert all(path in str(refused.value) for path in build.missing)
    assert "profiles/jovian-r37-ds41.toml" in str(refused.value)


def test_a_release_known_by_short_hashes_only_lacks_its_commits() -> None:
    build = build_of("glm53-jovian-r27", "jovian-r36-ds41", "jovian-r36-ds41:local")
    assert {"sources[vllm].commit", "sources[b12x].commit"} <= set(build.missing)


def test_deviations_and_known_defects_are_there_to_be_shown() -> None:
    build = build_of("glm53-jovian-r27", "jovian-r37-ds41", "x:1")
    assert any("13.2" in line for line in build.deviations)
    assert any("E4M3" in line for line in build.known_defects)


def test_the_build_command_line(tmp_path: Path) -> None:
    toy(tmp_path)
    build = build_of("toy", "one", "toy:1")
    assert build_command(build) == [
        "docker", "build",
        "--network", "host",
        "--progress", "plain",
        "--label", f"{LABEL}={build.digest}",
        "--tag", "toy:1",
        "--build-arg", "HTTP_PROXY",
        "--build-arg", "HTTPS_PROXY",
        "--build-arg", "NO_PROXY",
        "--build-arg", "http_proxy",
        "--build-arg", "https_proxy",
        "--build-arg", "no_proxy",
        "-",
    ]  # fmt: skip


def test_limits_of_the_build_are_arguments_and_not_in_the_digest(tmp_path: Path) -> None:
    limits = "\n[resources]\njob_gib = {}\n"
    folder = toy(tmp_path, PROFILE + limits.format(4), TEMPLATE + "ARG JOB_GIB\n")
    before = build_of("toy", "one", "toy:1")
    (folder / "profiles" / "one.toml").write_text(PROFILE + limits.format(8))
    after = build_of("toy", "one", "toy:1")
    assert before.digest == after.digest
    assert "JOB_GIB=4" in build_command(before)
    assert "JOB_GIB=8" in build_command(after)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("context/note.txt", "hello", "hallo"),
        ("profiles/one.toml", "toy/base:1", "toy/base:2"),
        ("profiles/one.toml", '"1.0"', '"1.1"'),
        ("Dockerfile.j2", "COPY note.txt /", "COPY note.txt /srv"),
    ],
)
def test_what_shapes_the_image_is_in_the_digest(
    tmp_path: Path, file: str, old: str, new: str
) -> None:
    path = toy(tmp_path) / file
    before = digest()
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert digest() != before


def test_another_file_in_the_context_is_another_digest(tmp_path: Path) -> None:
    folder = toy(tmp_path)
    before = digest()
    (folder / "context" / "second.txt").write_text("")
    assert digest() != before


def test_a_shared_file_that_no_step_uses_is_not_in_the_digest(tmp_path: Path) -> None:
    template = toy(tmp_path) / "Dockerfile.j2"
    before = build_of("toy", "one", "toy:1")
    assert "verify.py" not in before.files
    template.write_text(TEMPLATE + "COPY verify.py /\n")
    assert "verify.py" in build_of("toy", "one", "toy:1").files


def test_tag_comments_and_words_for_people_are_not_in_the_digest(tmp_path: Path) -> None:
    folder = toy(tmp_path)
    before = digest("toy:1")
    (folder / "profiles" / "one.toml").write_text(
        "# a comment\ndeviations = ['smaller']\n" + PROFILE
    )
    (folder / "README.md").write_text("not part of the build")
    (folder / "context" / "note.txt").chmod(0o755)
    assert digest("other:2") == before


def test_the_digest_is_64_hex_digits_and_takes_a_tenth_of_a_second() -> None:
    start = time.perf_counter()
    found = build_of("vllm-cpu", "vllm-cpu", "x:1").digest
    assert time.perf_counter() - start < 1
    assert len(found) == 64
    assert set(found) <= set("0123456789abcdef")


def test_the_digest_is_the_same_in_another_process() -> None:
    code = "import sys, pyinfra_vllm.image as i; print(i.build_of(*sys.argv[1:]).digest)"
    argv = [sys.executable, "-c", code, "vllm-cpu", "vllm-cpu", "x:1"]
    other = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    assert other == build_of("vllm-cpu", "vllm-cpu", "x:1").digest


def test_the_context_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    folder = plain(tmp_path)
    before = context_tar(build_of("plain", None, "plain:1"))
    (folder / "Dockerfile").touch()
    (folder / "start.sh").chmod(0o700)
    assert context_tar(build_of("plain", None, "plain:1")) == before


def test_scripts_in_the_context_are_executable(tmp_path: Path) -> None:
    plain(tmp_path)
    content = context_tar(build_of("plain", None, "plain:1"))
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        modes = {entry.name: entry.mode for entry in tar}
    assert modes == {"Dockerfile": 0o644, "start.sh": 0o755}


def test_a_plain_dockerfile_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = plain(tmp_path)
    build = build_of("plain", None, "plain:1")
    assert set(build.files) == {"Dockerfile", "start.sh"}
    assert build.files["Dockerfile"] == (folder / "Dockerfile").read_bytes()
    assert build.missing == ()
    (folder / "start.sh").write_text("#!/bin/sh\nexec false\n")
    assert build_of("plain", None, "plain:1").digest != build.digest


def test_the_working_directory_can_add_a_profile_to_a_shipped_image(tmp_path: Path) -> None:
    shipped = build_of("vllm-cpu", "vllm-cpu", "x:1")
    folder = tmp_path / "templates" / "images" / "vllm-cpu" / "profiles"
    folder.mkdir(parents=True)
    source = Path(__file__).parents[2] / "templates/images/vllm-cpu/profiles/vllm-cpu.toml"
    changed = source.read_text().replace("2.40-2", "2.40-3")
    (folder / "mine.toml").write_text(changed)
    mine = build_of("vllm-cpu", "mine", "x:1")
    assert b"binutils=2.40-3" in mine.files["Dockerfile"]
    assert mine.digest != shipped.digest
