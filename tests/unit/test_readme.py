"""The README's two commands are what is tested and what CI runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pyinfra_vllm import catalog
from pyinfra_vllm.cli import parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def command(name: str) -> str:
    """The one line behind the mark of this name."""
    found = re.search(rf"<!-- command: {name} -->\n```sh\n(.+)\n```\n", README)
    assert found, f"README.md has no command {name}"
    return found[1]


def steps(name: str) -> list[list[str]]:
    return [shlex.split(step) for step in command(name).split(" && ")]


def test_each_command_is_one_line_that_bash_understands() -> None:
    for name in ("lab", "tests"):
        assert "\n" not in command(name)
        subprocess.run(["bash", "-n", "-c", command(name)], check=True)


def test_both_commands_begin_by_making_the_same_environment() -> None:
    assert steps("lab")[:3] == steps("tests")[:3]
    assert steps("tests")[3:] == [[".venv/bin/pytest"]]


def test_the_first_command_names_files_a_recipe_and_words_that_exist() -> None:
    up, deploy = steps("lab")[3:]
    assert up[0] == ".venv/bin/pyinfra-vllm"
    assert parser().parse_args(up[1:]).action == "up"
    assert deploy[:2] == [".venv/bin/pyinfra", "-y"]
    assert all((ROOT / file).is_file() for file in deploy[2:4])
    key, _, recipe = deploy[-1].partition("=")
    assert (deploy[-2], key) == ("--data", "recipe")
    assert catalog.find(recipe).recipe.required_nodes == 4


def test_ci_runs_the_second_command_word_for_word(tmp_path: Path) -> None:
    """A copy of .ci/run in a folder whose README says something harmless."""
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "run"
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    harmless = 'echo "CI is $CI" > ran && pwd >> ran'
    (tmp_path / "README.md").write_text(README.replace(command("tests"), harmless))
    subprocess.run(["bash", str(script)], check=True, capture_output=True, cwd="/")
    assert (tmp_path / "ran").read_text() == f"CI is true\n{tmp_path}\n"


def test_a_second_command_that_fails_fails_ci(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "run"
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    (tmp_path / "README.md").write_text(README.replace(command("tests"), "false && true"))
    ran = subprocess.run(["bash", str(script)], check=False, capture_output=True)
    assert ran.returncode != 0


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_link_of_the_readme_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()
