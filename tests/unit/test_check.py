"""``pyinfra-vllm check``: what is wrong with recipes, without a node."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from pyinfra_vllm import cli, flag_cache
from pyinfra_vllm.image import build_of
from recipe_files import WHERE, writer

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*recipes: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    code = cli.main(["check", *recipes])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


def test_shipped_recipes_have_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    code, findings, summary = run(capsys=capsys)
    assert (code, findings) == (0, [])
    assert "no findings; flags unchecked: " in summary


def test_a_finding_is_one_line_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer(tmp_path)("[env]\nVLLM_PORT = '1'", shm_sise='"32gb"')
    code, findings, summary = run(WHERE, capsys=capsys)
    assert code == 1
    assert [line.partition(": ")[2].split(":")[0] for line in findings] == [
        "env.VLLM_PORT",
        "shm_sise",
    ]
    assert summary.startswith("1 recipe, 2 findings")


def test_no_toml_no_such_recipe_and_no_such_image_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer(tmp_path)(docker_image_dir='"vllm-cqu"')
    Path("broken.toml").write_text("a = [")
    code, findings, _ = run(WHERE, "broken.toml", "r99", capsys=capsys)
    assert code == 1
    assert any(line.startswith("broken.toml:1:6: not TOML") for line in findings)
    assert any("recipe 'r99'" in line for line in findings)
    assert any(line.startswith(f"{WHERE}: docker_image_dir: ") for line in findings)


@pytest.mark.parametrize(
    ("image", "profile", "key"),
    [
        ("vllm-cpu", "vllm-cqu", "build_profile"),
        ("vllm-cpu", None, "build_profile"),
        ("plain", "vllm-cpu", "build_profile"),
        ("vllm-cqu", "vllm-cpu", "docker_image_dir"),
    ],
)
def test_what_is_wrong_about_the_image_stands_under_its_own_key(
    image: str, profile: str | None, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = tmp_path / "templates" / "images" / "plain"
    plain.mkdir(parents=True)
    (plain / "Dockerfile").write_text("FROM scratch\n")
    said = {"build_profile": f'"{profile}"'} if profile else {}
    writer(tmp_path)(docker_image_dir=f'"{image}"', **said)
    code, findings, _ = run(WHERE, capsys=capsys)
    assert code == 1
    assert [line.split(": ")[1] for line in findings] == [key]


def test_flags_are_checked_where_the_image_has_been_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = build_of("vllm-cpu", "vllm-cpu", "x:1").digest
    writer(tmp_path)(
        docker_image_dir='"vllm-cpu"', build_profile='"vllm-cpu"', args='["--max-modle-len", "1"]'
    )
    code, findings, summary = run(WHERE, capsys=capsys)
    assert (code, findings) == (0, [])
    assert "flags unchecked: image:tag" in summary
    flag_cache.keep(build, (DATA / "flags_vllm_0.32.json").read_text())
    code, findings, summary = run(WHERE, capsys=capsys)
    assert code == 1
    assert findings[0].startswith(f"{WHERE}: args[0]: --max-modle-len: ")
    assert findings[0].endswith("did you mean --max-model-len?")
    assert "unchecked" not in summary


def test_200_recipes_are_checked_in_two_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(200):
        folder = tmp_path / "recipes" / f"copy-{number}-4x"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "recipes" / "dsv41-flash-jovian-r37-4x" / "recipe.toml", folder)
    began = time.process_time()
    code, _, summary = run(capsys=capsys)
    assert code == 0
    assert int(summary.split()[0]) >= 200
    assert time.process_time() - began < 2
