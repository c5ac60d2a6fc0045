"""Lists of flags that this machine has seen, one file a build: the build digest names it."""

from __future__ import annotations

import os
from pathlib import Path

from pyinfra_vllm import flag_list
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.flag_list import FlagList


def known(build: str) -> FlagList | None:
    """The flags of the image with this build digest, or None when nobody has asked it here."""
    try:
        return flag_list.parse(_path(build).read_text(encoding="utf-8"))
    except (OSError, UserError):
        return None


def keep(build: str, text: str) -> FlagList:
    """Keep what the image said; UserError when it isn't a list of flags."""
    found = flag_list.parse(text)
    path = _path(build)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return found


def _path(build: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "pyinfra-vllm", "flags", f"{build}.json")
