"""Ask docker, with a deadline: the client of a stopped daemon waits for ever."""

from __future__ import annotations

import subprocess

from . import container, paths
from .errors import Absent, Unmet
from .launch import Launch

_SECONDS = 10.0


def ask(argv: list[str], seconds: float = _SECONDS) -> list[str]:
    """Lines that docker prints; Unmet with its message when it fails or is late."""
    words = " ".join(argv[:3])
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise Unmet("docker is not installed on this node; install it (docker.io)") from None
    except subprocess.TimeoutExpired:
        raise Unmet(f"docker doesn't answer: `{words}` took more than {seconds:.0f} s") from None
    if done.returncode != 0:
        raise Unmet(f"`{words}` failed: {_last_line(done.stderr)}")
    return done.stdout.split("\n")[:-1]


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def own_containers(gang: str) -> list[str]:
    """Ids of the gang's containers on this node."""
    return [line for line in ask(container.list_own(gang)) if line]


def remove_own(gang: str) -> int:
    """Kill and remove the gang's containers; how many there were."""
    ids = own_containers(gang)
    if ids:
        ask(container.remove(ids), seconds=30.0)
    return len(ids)


def check_name(launch: Launch) -> None:
    """Unmet when a container that isn't ours has the name; call after :func:`remove_own`."""
    if any(ask(container.list_named(launch.container))):
        raise Unmet(
            f"a container named {launch.container} is here without the label "
            f"{paths.LABEL_GANG}={launch.gang}, so it isn't ours; rename or remove it "
            f"(docker rename {launch.container} NEW)"
        )


def image_id(launch: Launch) -> str:
    """Id of the image to run; Unmet when this node has none.

    With a build digest the label decides, and of several images of one build
    the one that has the tag, else the newest.
    """
    tagged = _tagged(launch.tag)
    if launch.build is None:
        if tagged is None:
            ask(container.list_named(launch.container))  # or docker is what doesn't answer
            raise Absent(f"image {launch.tag} is not on this node; run the deploy")
        return tagged
    ids = [line for line in ask(container.images_of_build(launch.build)) if line]
    if not ids:
        raise Absent(
            f"no image of build {launch.build[:12]} ({launch.tag}) is on this node; run the deploy"
        )
    return tagged if tagged in ids else ids[0]


def _tagged(tag: str) -> str | None:
    try:
        return ask(container.image_of_tag(tag))[0]
    except (Unmet, IndexError):
        return None
