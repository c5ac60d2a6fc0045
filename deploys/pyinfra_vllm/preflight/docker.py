"""Checks of docker: the daemon, room for images, limits, the image itself."""

from __future__ import annotations

from pyinfra_vllm.preflight.finding import (
    Place,
    Results,
    Subject,
    fail,
    gib,
    ok,
    unknown,
    warn,
)

# What operations compare with: without one of these nothing can be decided.
NEEDED = (
    "system", "disks", "docker", "images", "containers", "unit", "gang", "agent", "files",
    "snapshots", "local_files", "composed", "listeners", "interfaces",
)  # fmt: skip


def docker(place: Place) -> Results:
    """The daemon answers."""
    part = place.state.docker
    if part.ok:
        yield ok(f"docker {part.required.version}")
    else:
        yield fail(
            f"docker doesn't answer ({part.reason})", "",
            "install it (apt-get install docker.io, on DGX OS docker-ce) and start it: "
            "systemctl enable --now docker",
        )  # fmt: skip


def state(place: Place) -> Results:
    """Every part of the node state that a deploy compares with could be read."""
    failures = place.state.failures()
    for name in NEEDED:
        if name in failures:
            yield fail(f"{name} can't be read: {failures[name]}")
    if not set(NEEDED) & set(failures):
        yield ok("read whole")


def memlock(place: Place) -> Results:
    """RDMA and io_uring pin memory; only a dockerd that may raise limits can allow that."""
    raises = place.state.docker.required.raises_limits
    if raises is None:
        yield unknown("dockerd's capabilities can't be read")
    elif raises:
        yield ok("dockerd may raise limits")
    else:
        yield warn(
            "dockerd may not raise limits (it lacks CAP_SYS_RESOURCE)",
            "containers ask for memlock=-1",
            "run dockerd as root, outside of a restricted container",
        )


def disk_images(place: Place) -> Results:
    """Room on docker's data root for the image, and once more for its way there."""
    found = place.state.docker.required
    free = found.data_root_disk.free
    measured = f"{gib(free)} are free on {found.data_root}"
    sizes = [size for other in place.subject.places if (size := _image_size(other))]
    if _image_size(place):
        yield ok(f"{measured}, the image is there")
    elif not sizes:
        yield unknown(f"{measured}; how large the image gets is not known before it is built")
    elif free >= 2 * max(sizes):
        yield ok(measured)
    else:
        yield fail(
            measured, f"{gib(2 * max(sizes))} are needed to take the image over",
            "docker image prune, or move data-root in /etc/docker/daemon.json to a larger disk",
        )  # fmt: skip


def _image_size(place: Place) -> int:
    build, state = place.subject.build, place.state
    found = state.image_of(build.digest) if build else None
    found = found or state.image_tagged(place.recipe.docker_image)
    return found.size if found else 0


def image(subject: Subject) -> Results:
    """The image is there, or can be built."""
    tag, build = subject.recipe.docker_image, subject.build
    if build is None:
        missing = [place.node.name for place in subject.places if not _tagged(place, tag)]
        if missing:
            yield fail(
                f"image {tag} is not on {', '.join(missing)}",
                "and the recipe has no docker_image_dir to build it from",
            )
        return
    if build.missing and not any(place.state.image_of(build.digest) for place in subject.places):
        lines = "".join(f"\n  {field}" for field in build.missing)
        yield fail(
            f"image {tag} can't be built", f"its profile has fields that are still todo:{lines}"
        )
        return
    yield ok(f"image {tag} is there or can be built")


def _tagged(place: Place, tag: str) -> bool:
    return place.state.image_tagged(tag) is not None
