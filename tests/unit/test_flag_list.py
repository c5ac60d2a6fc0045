"""Command lines against the list of flags that a real image gave (vLLM 0.32, CPU build)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm import catalog, flag_cache, flag_list
from pyinfra_vllm.check import flag_findings
from pyinfra_vllm.errors import UserError

LIST = (Path(__file__).parent / "data" / "flags_vllm_0.32.json").read_text()
KNOWN = flag_list.parse(LIST)
SCRIPT = Path(__file__).parents[2] / "templates" / "images" / "shared" / "flags.py"

WRONG = {
    "unknown, one is near": (
        ["--max-modle-len", "256"],
        "--max-modle-len: the image's vLLM 0.32.0+cpu has no such flag; "
        "did you mean --max-model-len?",
    ),
    "unknown, none is near": (
        ["--zzz"],
        "--zzz: the image's vLLM 0.32.0+cpu has no such flag",
    ),
    "bad choice": (
        ["--kv_cache_dtype=fp9"],
        '--kv-cache-dtype: no such choice: "fp9"; did you mean fp8?',
    ),
    "a name that the engine looks up late": (
        ["--tool-call-parser", "hermez"],
        '--tool-call-parser: no such choice: "hermez"; did you mean hermes?',
    ),
    "broken JSON": (
        ["--engram-config", '{"cpu_offload":false'],
        "--engram-config: broken JSON at character 21: Expecting ',' delimiter, "
        'near "{\\"cpu_offload\\":false"',
    ),
    "no whole number": (
        ["--max-num-seqs", "four"],
        '--max-num-seqs: expected a whole number, got "four"',
    ),
    "no number": (
        ["--gpu-memory-utilization", "88%"],
        '--gpu-memory-utilization: expected a number, got "88%"',
    ),
    "no value": (["--seed"], "--seed: expected a whole number, got nothing"),
    "a value too much": (["--enforce-eager", "true"], "--enforce-eager: expected no value, got"),
    "an ambiguous beginning": (
        ["--max-num-s", "1"],
        "--max-num-s: could be --max-num-scheduled-tokens or ",
    ),
    "no keys after a dot": (["--max-num-seqs.x", "1"], "--max-num-seqs: takes no keys after a dot"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_image_would_refuse_is_named(case: str) -> None:
    words, said = WRONG[case]
    found = [text for _, text in flag_list.findings(KNOWN, words)]
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--seed", "1", "--max-num-seqs", "four"], 3),
        (["--seed", "1", "--max-num-seqs=four"], 2),
        (["--enforce-eager", "true"], 1),
        (["--seed", "--max-modle-len", "4"], 0),
    ],
)
def test_the_place_is_that_of_the_bad_word(words: list[str], place: int) -> None:
    assert next(flag_list.findings(KNOWN, words))[0] == place


@pytest.mark.parametrize(
    "words",
    [
        ["-tp", "4", "--tensor_parallel_size=4"],
        ["--no-enable-prefix-caching"],
        ["-O3", "-O", "3", "-O.mode", "3", "-cc.mode", "3", "--compilation-config.mode=3"],
        ["--max-model-len", "8k", "--max-model-len", "auto"],
        ["--served-model-name", "a", "b"],
        ["--gpu-memory", "0.5"],
        ["--max-loras", "None"],
        ["--nnodes", "4", "--node-rank", "1", "--master-addr", "x", "--headless"],
    ],
)
def test_what_the_image_takes_is_not_refused(words: list[str]) -> None:
    assert list(flag_list.findings(KNOWN, words)) == []


def test_a_recipe_of_unknown_flags_alone_is_named_whole_and_hinted_at_in_part() -> None:
    words = [f"--max-model-lem-{number}" for number in range(300)]
    found = [text for _, text in flag_list.findings(KNOWN, words)]
    hinted = ["did you mean --max-model-len?" in text for text in found]
    assert len(found) == 300
    assert hinted == sorted(hinted, reverse=True) and any(hinted) and not all(hinted)


def test_the_only_flag_of_r37_that_this_vllm_lacks_is_the_forks_own() -> None:
    found = list(flag_findings(catalog.find("dsv41-flash-jovian-r37-4x").recipe, KNOWN))
    assert found == [
        "args[15]: --prefill-compute-share: the image's vLLM 0.32.0+cpu has no such flag; "
        "did you mean --prefill-context-parallel-size?"
    ]


def test_the_recipes_of_the_lab_have_only_flags_of_their_image() -> None:
    for name in ("tiny-cpu-1x", "tiny-cpu-4x"):
        assert list(flag_findings(catalog.find(name).recipe, KNOWN)) == []


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match=r"flags\.json of the image is not understood: vllm"):
        flag_list.parse("{}")


def test_a_list_is_kept_by_build_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert flag_cache.known("b" * 64) is None
    assert flag_cache.keep("b" * 64, LIST) == KNOWN
    assert flag_cache.known("b" * 64) == KNOWN
    with pytest.raises(UserError):
        flag_cache.keep("c" * 64, "no list")
    assert flag_cache.known("c" * 64) is None


STUB = {
    "vllm/__init__.py": "",
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/cli/__init__.py": "",
    "vllm/utils/__init__.py": "",
    "vllm/utils/argparse_utils.py": "from argparse import ArgumentParser as FlexibleArgumentParser",
    "vllm/reasoning.py": (
        "class ReasoningParserManager:\n"
        "    @staticmethod\n"
        "    def list_registered():\n"
        "        return ['b', 'a']\n"
    ),
    "vllm-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 1.2\n",
    "vllm/entrypoints/cli/serve.py": """
import argparse, json
print("chatter of an import")
class Serve:
    def subparser_init(self, subparsers):
        parser = subparsers.add_parser("serve")
        parser.add_argument("model", nargs="?")
        parser.add_argument("--count", "-c", type=int)
        parser.add_argument("--share", type=float)
        parser.add_argument("--config", type=json.loads)
        parser.add_argument("--kind", choices=["x", "y"])
        parser.add_argument("--many", nargs="+")
        parser.add_argument("--on", action=argparse.BooleanOptionalAction)
        parser.add_argument("--reasoning-parser", type=str)
        return parser
def cmd_init():
    return [Serve()]
""",
}


def test_an_image_is_asked_for_names_types_and_choices(tmp_path: Path) -> None:
    for name, text in STUB.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["vllm"] == "1.2"
    found = {flag.names[0]: flag for flag in flag_list.parse(done.stdout).flags}
    assert set(found) == {
        "-h", "--count", "--share", "--config", "--kind", "--many", "--on", "--reasoning-parser",
    }  # fmt: skip
    assert (found["--count"].kind, found["--count"].names) == ("int", ("--count", "-c"))
    assert (found["--share"].kind, found["--config"].kind) == ("float", "json")
    assert found["--kind"].choices == ("x", "y")
    assert found["--reasoning-parser"].choices == ("a", "b")
    assert (found["--many"].least, found["--many"].most > 100) == (1, True)
    assert (found["--on"].most, found["--on"].names) == (0, ("--on", "--no-on"))
