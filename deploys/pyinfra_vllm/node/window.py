"""Script for a node: the mark that a gang is paused for a build, with the lease in it.

It is sent on standard input with its request in place of ``REQUEST`` and needs the standard
library only. The mark of a person's pause is never touched.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {}


def main(request: dict[str, Any]) -> int:
    """Exit code: 1 when there is another pause, or no window to renew."""
    path = Path(request["path"])
    known = read(path)
    if request["do"] == "open":
        if known is not None and "lease" not in known:
            print(f"{path}: somebody has paused the gang", file=sys.stderr)
            return 1
        write(path, request["document"])
    elif request["do"] == "renew":
        # A window that is over stays so: the old release serves again, or is about to.
        if known is None or "lease" not in known or age(path) > known["lease"]:
            return 1
        os.utime(path)
    elif known is not None and "lease" in known:
        path.unlink(missing_ok=True)
    return 0


def read(path: Path) -> dict[str, Any] | None:
    """The mark; one that can't be read is somebody's."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return {}


def age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def write(path: Path, document: dict[str, Any]) -> None:
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(document, indent=2) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
        os.fchmod(stream.fileno(), 0o644)
    fresh.replace(path)


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
