"""Words and variables that a launcher could break, as recipes."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Mapping, Sequence

NASTY = (
    "", " ", "  two  spaces  ", "a b", "tab\there", "line\nbreak", "\n", "trailing\n", "\r\n",
    "'", '"', "''", '""', "it's", 'say "so"', "`id`", "$HOME", "${HOME}", "$(id)", "$$", "$1",
    "%", "%d", "%%", "%n%i%H", "100%", "\\", "\\\\", "\\n", "C:\\x\\", "\\'", '\\"', "!", "!!",
    "#", "# x", "a#b", ";", "&&", "|", ">", "<", "*", "?", "[a-z]", "~", "{a,b}", "{{ x }}",
    "{% x %}", "{#", "=", "==", "a=b", "=b", ",", "a,b", "-", "-1", "-0.5", "-x", "--x=y z",
    "-e", "@file", "é", "日本語", "🤖", "\u200b", "\u202e", "\ufeff", "e\u0301", "\x01\x1b[31m",
    "\x7f", '{"a":1}', '{"a": "b c", "d": [1, 2]}', '{"q":"it\'s \\"x\\" $y %z \\n"}', "null",
    "true", "0", "x" * 1000, "%s" * 500, "é" * 500,
)  # fmt: skip
LARGE = "".join(chr(33 + i % 90) for i in range(100_000))

_LETTERS = " '\"\\$%`!#&|;<>*?[]{}()=,:~^-_+@/\n\t\r\x01\x7fabcXYZ019éß日🤖\u2028\u200b"


def word(source: random.Random) -> str:
    """A random word that no flag of the launcher's looks like."""
    if source.random() < 0.25:
        return source.choice(NASTY)
    text = "".join(source.choice(_LETTERS) for _ in range(source.randrange(0, 40)))
    return f"-z{text}" if text.startswith("-") else text


def case(source: random.Random) -> tuple[list[str], dict[str, str]]:
    """Random args and environment."""
    words = [word(source) for _ in range(source.randrange(0, 12))]
    names = (f"X_{source.choice('ABCxyz')}{number}" for number in range(source.randrange(0, 8)))
    return ["--first", *words], {name: word(source) for name in names}


def recipe(args: Sequence[str], env: Mapping[str, str], entrypoint: str, **keys: str) -> str:
    """A recipe.toml that says exactly this."""
    top = {
        "engine": "vllm",
        "name": "fidelity",
        "docker_image": "fidelity:1",
        "model": "tiny-random/llama-tp4",
        **keys,
    }
    lines = [f"{key} = {toml(value)}" for key, value in top.items()]
    lines += ["required_nodes = 1", "tensor_parallel_size = 1", "start_timeout = 60"]
    lines += [f"entrypoint = [{toml(entrypoint)}]", "args = ["]
    lines += [f"    {toml(as_written(one))}," for one in args]
    return "\n".join([*lines, "]", "[env]", *(f"{n} = {toml(v)}" for n, v in env.items())]) + "\n"


def as_written(text: str) -> str:
    """A word that would lose quotes of its own is written in the shell's."""
    return shlex.quote(text) if text.strip().startswith(("'", '"')) else text


def toml(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
