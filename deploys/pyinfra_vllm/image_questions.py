"""What a deploy asks an image before anything is stopped: commands and scripts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyinfra_vllm import flag_list, serving
from pyinfra_vllm.node_script import filled
from pyinfra_vllm.release import Content

REFUSED = 2
"""Exit code of the script when the image's ``vllm serve`` refuses a command line."""

_SCRIPT = Path(__file__).parent / "node" / "parse_arguments.py"
_SLOT = "COMMANDS: list[list[str]] = []\n"
_ALONE = ["docker", "run", "--rm", "--network", "none", "--oom-score-adj", "1000"]
_MEMORY = "2g"
"""Of a container that imports vLLM; without a limit it could take memory from what serves."""

_SECONDS = 180


def list_of_flags(image: str) -> list[str]:
    """Prints the image's list of flags; fails where it has none."""
    return [*_ALONE, "--entrypoint", "cat", image, flag_list.PATH]


def parse_arguments(image: str) -> list[str]:
    """Runs the script on its standard input inside the image."""
    limits = ["--memory", _MEMORY, "--interactive", "--entrypoint", "python3"]
    return ["timeout", str(_SECONDS), *_ALONE, *limits, image, "-"]


def script(content: Content) -> str:
    """Has the image read the command lines of the first and the last rank."""
    gang, skip = content.gang, len(flag_list.ENTRYPOINT)
    ranks = dict.fromkeys((gang.nodes[0], gang.nodes[-1]))
    commands = [list(serving.argv(content.recipe, gang, node)[skip:]) for node in ranks]
    return filled(_SCRIPT, _SLOT, "COMMANDS", commands)


def reason(lines: Sequence[str]) -> str:
    """vLLM's own words in what the script printed: the end of its usage message."""
    said = [line for line in lines if line.strip()]
    return said[-1].partition("error: ")[2] or said[-1] if said else "no reason given"
