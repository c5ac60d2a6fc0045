"""The command lines of docker. Pure: values in, argv out; :mod:`docker` runs them."""

from __future__ import annotations

from collections.abc import Mapping

from . import paths
from .launch import Launch, Mount

STOP_SECONDS = 30
"""A headless worker takes 10 to 11 s to stop, docker's own default is 10."""


def run(launch: Launch, image: str, found: Mapping[str, str] | None = None) -> list[str]:
    """``docker run`` of this rank, the client attached in the foreground.

    ``found``: variables that only a start can know; they win over the release's.

    The container's log goes to the client's output and nowhere else: docker
    keeps no second, unrotated copy. It is not removed at its end, so that its
    last state can be looked at; the next start removes it.
    """
    argv = ["docker", "run", "--pull", "never", "--name", launch.container]
    for name, value in launch.labels.items():
        argv += ["--label", f"{name}={value}"]
    argv += ["--log-driver", "none"]
    argv += launch.options
    for mount in launch.mounts:
        argv += ["--mount", _bind(mount)]
    for name, value in {**launch.environ, **(found or {})}.items():
        argv += ["--env", f"{name}={value}"]
    # By name only: the docker client takes the values from its own environment.
    for name in launch.secrets:
        argv += ["--env", name]
    argv += ["--entrypoint", launch.argv[0], image, *launch.argv[1:]]
    return argv


def _bind(mount: Mount) -> str:
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    return ",".join(_csv(field) for field in fields)


def _csv(field: str) -> str:
    """docker reads the value of ``--mount`` as one line of CSV."""
    if not set(field) & set(',"\n'):
        return field
    return '"' + field.replace('"', '""') + '"'


def list_own(gang: str) -> list[str]:
    """Ids of every container of the gang, running or not."""
    label = f"label={paths.LABEL_GANG}={gang}"
    return ["docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", label]


def list_named(name: str) -> list[str]:
    """Id of the container with exactly this name."""
    return ["docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", f"name=^/?{name}$"]


def remove(ids: list[str]) -> list[str]:
    """Kill and remove."""
    return ["docker", "rm", "--force", "--volumes", *ids]


def stop(ids: list[str]) -> list[str]:
    """Ask to stop, kill what doesn't within :data:`STOP_SECONDS`."""
    return ["docker", "stop", "-t", str(STOP_SECONDS), *ids]


def images_of_build(build: str) -> list[str]:
    """Ids of the images with this build digest, the newest first."""
    label = f"label={paths.LABEL_BUILD}={build}"
    return ["docker", "image", "ls", "--quiet", "--no-trunc", "--filter", label]


def image_of_tag(tag: str) -> list[str]:
    """Id of the image with this tag."""
    return ["docker", "image", "inspect", "--format", "{{.Id}}", tag]


def pid_of(name: str) -> list[str]:
    """Pid of a container's first process on the node; 0 while it doesn't run."""
    return ["docker", "inspect", "--format", "{{.State.Pid}}", name]


def last_state(container: str) -> list[str]:
    """How a container ended: whether memory ran out, and docker's own error."""
    return ["docker", "inspect", "--format", "{{.State.OOMKilled}} {{.State.Error}}", container]
