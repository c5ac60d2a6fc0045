"""What is slow to make and the same for all labs: made once, kept while it is used."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pyinfra_vllm.lab.layout import CACHE, STATE
from pyinfra_vllm.lab.shell import Steps, locked

_UNUSED_DAYS = 30


def ensure(steps: Steps, path: Path, make: Callable[[Path], None]) -> Path:
    """``path``, made first when it is missing; old ones that nothing uses are removed then."""
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with locked(path.name):
            if not path.exists():
                with steps.step(f"made {path}"):
                    make(path)
                _prune(_UNUSED_DAYS)
    os.utime(path)
    return path


def _prune(days: int) -> None:
    """Remove what no lab's overlays stand on and no ``up`` has used for ``days``.

    The age is the ctime: a root that is being made has the mtime of some package.
    """
    in_use = {link.resolve() for link in STATE.glob("*/lower")}
    for path in CACHE.iterdir():
        if path not in in_use and path.stat().st_ctime < time.time() - days * 86400:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
