from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from pyinfra_vllm import cli
from pyinfra_vllm.errors import UserError


@pytest.mark.parametrize("words", [["--help"], ["lab", "--help"]])
def test_help_is_shown_and_exits_with_zero(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert "lab" in capsys.readouterr().out


def test_help_loads_neither_pyinfra_nor_pydantic_nor_numpy() -> None:
    code = (
        "import sys\n"
        "from pyinfra_vllm import cli\n"
        "cli.parser()\n"
        "print(sorted({'pyinfra', 'gevent', 'pydantic', 'jinja2', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_a_command_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 1
    assert "usage: pyinfra-vllm" in capsys.readouterr().err


def test_a_users_mistake_is_one_message_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise UserError("lab x: no such thing")

    monkeypatch.setattr("pyinfra_vllm.cli.lab.run", run)
    assert cli.main(["lab", "status"]) == 1
    assert capsys.readouterr().err == "pyinfra-vllm: lab x: no such thing\n"


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyinfra_vllm.cli.lab.run", run)
    assert cli.main(["lab", "status"]) == 130


def test_the_labs_name_comes_from_option_then_environment_then_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYINFRA_VLLM_LAB", raising=False)
    assert cli.parser().parse_args(["lab", "status"]).name == "lab"
    monkeypatch.setenv("PYINFRA_VLLM_LAB", "mine")
    assert cli.parser().parse_args(["lab", "status"]).name == "mine"
    assert cli.parser().parse_args(["lab", "--name", "yours", "status"]).name == "yours"


def test_a_command_for_a_node_keeps_its_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.delenv("PYINFRA_VLLM_LAB", raising=False)
    monkeypatch.setattr(
        "pyinfra_vllm.lab.control.open_ssh", lambda *words: asked.append(list(words))
    )
    assert cli.main(["lab", "ssh", "lab-0", "--", "ls", "-l", "/a b"]) == 0
    assert cli.main(["lab", "ssh", "lab-0", "docker", "ps", "--all"]) == 0
    assert asked == [
        ["lab", "lab-0", ["ls", "-l", "/a b"]],
        ["lab", "lab-0", ["docker", "ps", "--all"]],
    ]


def test_a_wrong_option_of_a_plan_is_no_plan_with_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", "inventory/gb10.py", "r37", "--bogus"])
    assert ended.value.code == 1
    assert "--bogus" in capsys.readouterr().err
