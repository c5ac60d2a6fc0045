"""The README's two commands are what is tested and what CI runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm import catalog, symptoms
from pyinfra_vllm.cli import parser
from unit import gb10
from unit.gangs import check_golden

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


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("*/README.md")), ROOT / symptoms.FILE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one_that_the_program_understands(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    said = re.findall(r"(?:`|^    |run: )pyinfra-vllm ([^`|>\n]+)", text, re.M)
    for command in said:
        words = shlex.split(re.split(r"  +|\|\||;", command)[0])
        if len(words) > 1 and not words[1].startswith("--"):  # else a part of it is named
            parser().parse_args([word.replace("[", "").replace("]", "") for word in words])
    files = re.findall(r"deploys/\w+\.py", text)
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_the_page_of_symptoms_is_made_from_the_tables_in_the_code() -> None:
    check_golden(ROOT / symptoms.FILE, symptoms.text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_of_a_table_has_the_cells_of_its_head(page: Path) -> None:
    """A bar in a cell, within code as well, begins another cell unless it is escaped."""
    tables = re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.M)
    for table in tables:
        head, *rows = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert {*rows} == {head}, table


def test_the_workflow_for_ci_runs_and_needs_no_secret(tmp_path: Path) -> None:
    """Its steps as they stand, on a copy of what they read, over states of nodes with the image."""
    page = (ROOT / "inventory" / "README.md").read_text(encoding="utf-8")
    workflow = re.search(r"```yaml\n(name: plan\n.+?)```", page, re.S)
    assert workflow and "secrets." not in workflow[1]
    steps = re.findall(r"run: (pyinfra-vllm .+)", workflow[1])
    assert [step.split()[1] for step in steps] == ["check", "render", "plan"]
    for name in ("inventory", "recipes", "templates"):
        (tmp_path / name).symlink_to(ROOT / name)
    states = tmp_path / "states"
    states.mkdir()
    for rank in range(4):
        document = gb10.document(rank)
        image = {"id": "sha256:1", "build": gb10.build().digest, "layers": ["sha256:2"]}
        document["images"]["value"] = [image]
        (states / f"spark-{rank}.json").write_text(json.dumps(document))
    environ = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYINFRA_VLLM_INVENTORY": "inventory/gb10.py", "PYINFRA_VLLM_STATES": "states",
    }  # fmt: skip
    for step in steps:
        command = step.replace("inventory/states", "states")
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environ, check=True)
    assert (tmp_path / "plan.md").read_text().startswith("### r37: ")
    assert (tmp_path / "rendered").is_dir()
