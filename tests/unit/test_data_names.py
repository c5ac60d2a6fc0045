"""Names given with ``--data``: which are ours, and which are ours misspelt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pyinfra_vllm
from pyinfra_vllm.cluster import KEYS
from pyinfra_vllm.data_names import WORDS, misspelt

SOURCE = Path(pyinfra_vllm.__file__).parent
READ = re.compile(
    r"""(?:data|nodes\[[^]]*(?:\[[^]]*\])?[^]]*\])\.get\(\s*"(\w+)"|"""
    r"""data\.(?:flag|text|seconds)\(host,\s*"(\w+)"|"""
    r"""data_defaults=(\{[^}]*\})|_DEFAULTS = (\{[^}]*\})"""
)


def test_every_name_that_is_read_of_host_data_is_known_and_no_other() -> None:
    read: set[str] = set()
    for folder in ("deploys", "operations", "facts", "."):
        for path in (SOURCE / folder).glob("*.py"):
            for found in READ.findall(path.read_text()):
                read |= set(re.findall(r"\w+", " ".join(found[:2])))
                read |= set(re.findall(r'"(\w+)":', " ".join(found[2:])))
    ours = {name for name in read if not name.startswith("ssh_")}
    assert ours - set(KEYS) - {"UpperDir", "LowerDir"} == WORDS


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stage_onyl", "stage_only"),
        ("stage-only", "stage_only"),
        ("gagn", "gang"),
        ("wyh", "why"),
        ("recipie", "recipe"),
        ("trail_seconds", "trial_seconds"),
        ("vllm_image_sorce", "vllm_image_source"),
    ],
)
def test_a_misspelt_name_comes_with_the_one_that_is_meant(said: str, meant: str) -> None:
    assert misspelt(["recipe", said]) == [f"--data {said}: unknown; did you mean {meant}?"]


def test_what_begins_like_ours_is_ours() -> None:
    (line,) = misspelt(["vllm_xyz"])
    assert line.startswith("--data vllm_xyz: unknown; known here: vllm_alert, ")


def test_names_of_others_are_left_alone() -> None:
    others = ["version", "state", "date", "user", "ssh_user", "ssh_port", "_sudo", "env", "x"]
    assert misspelt([*others, *WORDS, *KEYS]) == []
    assert misspelt(["image"]) and misspelt(["image"], {"image"}) == []
