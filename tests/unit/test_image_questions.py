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


def ask(tmp_path: Path, limit: bool, utils: bool = True) -> subprocess.CompletedProcess[str]:
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
        input=image_questions.script(content_of("tiny-cpu-4x")),
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
