"""Where paths are mounted: by the kernel's table alone, so that a dead server hangs nobody."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyinfra_vllm.node.collect.files import read_text
from pyinfra_vllm.node.collect.parts import Document

_ESCAPE = re.compile(r"\\([0-7]{3})")


def mounts(paths: Iterable[str]) -> Document:
    """The mount that each path is on; links in a path are not followed."""
    table = read_table(read_text("/proc/self/mountinfo"))
    return {path: mount_of(path, table) for path in paths}


def mount_of(path: str, table: Iterable[Document]) -> Document | None:
    """The mount with the longest mount point above ``path``; of equal ones the last, which hides
    the others."""
    found: Document | None = None
    for mount in table:
        point = mount["mount_point"]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (found is None or len(point) >= len(found["mount_point"])):
            found = mount
    return found


def read_table(text: str) -> list[Document]:
    """``/proc/self/mountinfo`` (proc(5)); octal escapes are resolved."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, others = left.split(" "), right.split(" ")
        found.append(
            {
                "mount_point": _plain(words[4]),
                "type": others[0],
                "source": _plain(others[1]),
                "options": words[5].split(","),
            }
        )
    return found


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found.group(1), 8)), text)
