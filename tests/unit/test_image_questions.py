"""What an image is asked before anything is stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm import image_questions
from unit.gangs import content_of

STUB = """
import argparse
class Serve:
    def subparser_init(self, subparsers):
        parser = subparsers.add_parser("serve")
        parser.add_argument("model_tag", nargs="?")
        parser.set_defaults(model="")
        parser.add_argument("--headless", action="store_true")
        parser.add_argument("--max-num-seqs", type=int)
        for name in ("tool-call-parser", "reasoning-parser", "load-format", "tool-parser-plugin"):
            parser.add_argument("--" + name)
        return parser
    def parse(self, parser, words):
        return parser.parse_known_args(words)[0]
    def validate(self, args):
        if args.model != "/model":
            raise ValueError("which model?")
        if args.headless and LIMIT:
            raise ValueError("no headless today")
def cmd_init():
    return [Serve()]
"""


PARSERS = """
class {manager}:
    @classmethod
    def list_registered(cls):
        return ["deepseek_v41", "hermes"]
"""
LOADERS = '_LOAD_FORMAT_TO_MODEL_LOADER = {"auto": 1, "safetensors": 1, "instanttensor": 1}'


def ask(
    tmp_path: Path, limit: bool, utils: bool = True, args: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    package = tmp_path / "vllm"
    for name in ("", "entrypoints", "entrypoints/cli", "utils"):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").write_text("")
    (package / "entrypoints/cli/serve.py").write_text(f"LIMIT = {limit}\n{STUB}")
    known = (
        "import argparse\n"
        "class FlexibleArgumentParser(argparse.ArgumentParser):\n"
        "    def parse_args(self, words):\n"
        "        return self.parse_known_args(words)[0]\n"
    )
    if utils:
        (package / "utils/argparse_utils.py").write_text(known)
    return subprocess.run(
        [sys.executable, "-"],
        input=image_questions.script(content_of("tiny-cpu-4x", *args)),
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_and_the_last_rank_are_read(tmp_path: Path) -> None:
    assert ask(tmp_path, limit=False).returncode == 0
    refused = ask(tmp_path, limit=True)
    assert refused.returncode == image_questions.REFUSED
    assert image_questions.reason(refused.stderr.splitlines()) == "ValueError: no headless today"


def test_an_image_that_cannot_be_asked_refuses_nothing(tmp_path: Path) -> None:
    unable = ask(tmp_path, limit=True, utils=False)
    assert unable.returncode not in (0, image_questions.REFUSED)
    assert "ModuleNotFoundError" in image_questions.reason(unable.stderr.splitlines())


def lay_registries(tmp_path: Path) -> None:
    for name, text in {
        "tool_parsers": PARSERS.format(manager="ToolParserManager"),
        "reasoning": PARSERS.format(manager="ReasoningParserManager"),
        "model_executor": "",
        "model_executor/model_loader": LOADERS,
    }.items():
        (tmp_path / "vllm" / name).mkdir(parents=True)
        (tmp_path / "vllm" / name / "__init__.py").write_text(text)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("--tool-call-parser", "deepseek_v4"), "did you mean deepseek_v41?"),
        (("--reasoning-parser", "nonsense"), "there are deepseek_v41, hermes"),
        (("--load-format", "nonsense"), "--load-format nonsense: this vLLM has no such name"),
        (("--load-format", "instanttensor"), "the image has no Python module instanttensor"),
    ],
)
def test_names_that_only_a_start_would_refuse_are_refused(
    tmp_path: Path, args: tuple[str, ...], reason: str
) -> None:
    lay_registries(tmp_path)
    refused = ask(tmp_path, limit=False, args=args)
    assert refused.returncode == image_questions.REFUSED, refused.stderr
    assert reason in image_questions.reason(refused.stderr.splitlines())


@pytest.mark.parametrize(
    "args",
    [
        ("--tool-call-parser", "hermes", "--load-format", "safetensors"),
        ("--tool-call-parser", "own", "--tool-parser-plugin", "/own.py"),
    ],
)
def test_names_that_the_image_or_a_plugin_has_are_taken(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    lay_registries(tmp_path)
    done = ask(tmp_path, limit=False, args=args)
    assert (done.returncode, done.stdout) == (0, "")


def test_names_that_cannot_be_looked_up_are_said_to_be_unchecked(tmp_path: Path) -> None:
    done = ask(tmp_path, limit=False, args=("--load-format", "x", "--reasoning-parser", "y"))
    assert done.returncode == 0
    assert set(done.stdout.splitlines()) == {
        "unchecked: --load-format x: this vLLM has no list of the names",
        "unchecked: --reasoning-parser y: this vLLM has no list of the names",
    }


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["usage: x", "vllm serve: error: argument --x: no y", ""], "argument --x: no y"),
        (["some words"], "some words"),
        ([], "no reason given"),
    ],
)
def test_the_reason_is_vllms_own_last_line(lines: list[str], reason: str) -> None:
    assert image_questions.reason(lines) == reason


def test_the_container_that_asks_can_take_no_memory_from_what_serves() -> None:
    argv = image_questions.parse_arguments("sha256:1")
    assert argv[argv.index("--memory") + 1] == "2g"
    assert "--rm" in argv
    assert argv[argv.index("--network") + 1] == "none"
