"""Script for a node: remove our images of builds that no release on the node names.

It is sent on standard input and needs the standard library only. Ours are those with the
label of a build digest. Kept: the builds of all releases of all gangs, what the request
names, and whatever a container uses. Prints what each frees.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REQUEST: dict[str, Any] = {}


def main(request: dict[str, Any]) -> int:
    """Exit code; nothing is removed when a release can't be read."""
    try:
        kept = {*request["keep"], *_builds(Path(request["root"]))}
    except (OSError, ValueError, KeyError) as error:
        print(f"no image is removed: a release can't be read: {error}", file=sys.stderr)
        return 1
    containers = _lines("ps", "--all", "--quiet", "--no-trunc")
    used = set(_lines("inspect", "--format", "{{.Image}}", *containers)) if containers else set()
    for image in _ours(request["label"]):
        build = image["Config"]["Labels"][request["label"]]
        if build in kept or image["Id"] in used:
            continue
        names = image.get("RepoTags") or [image["Id"]]
        done = subprocess.run(["docker", "image", "rm", *names], capture_output=True, text=True)
        if done.returncode:
            print(f"{names[0]} stays: {done.stderr.strip()}", file=sys.stderr)
            continue
        size = image.get("Size", 0) / (1 << 20)
        print(f"removed {names[0]} (build {build[:12]}): up to {size:.0f} MiB", flush=True)
    return 0


def _builds(root: Path) -> set[str]:
    """Build digests of every release on the node."""
    found: set[str] = set()
    for path in root.glob("*/releases/*/launch.json"):
        build = json.loads(path.read_text(encoding="utf-8"))["image"]["build"]
        found |= {build} if build else set()
    return found


def _ours(label: str) -> list[dict[str, Any]]:
    """What ``docker image inspect`` says of each."""
    ids = sorted(set(_lines("image", "ls", "--quiet", "--no-trunc", "--filter", f"label={label}")))
    shown: list[dict[str, Any]] = json.loads(
        "\n".join(_lines("image", "inspect", *ids)) if ids else "[]"
    )
    return shown


def _lines(*words: str) -> list[str]:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__" and REQUEST:
    sys.exit(main(REQUEST))
