"""What an image is built from, and the digest that is its identity."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyinfra_vllm import image_files, image_profile
from pyinfra_vllm.agent import paths
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image_dockerfile import dockerfile, refuse_absent
from pyinfra_vllm.image_files import DOCKERFILE, ImageFiles
from pyinfra_vllm.image_profile import Resources

LABEL = paths.LABEL_BUILD
"""The image label that holds the build digest; not in the Dockerfile, which the digest covers."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Build arguments that docker knows by itself and keeps out of the image; values from the node."""

_DIGEST_OF = b"pyinfra-vllm build, version 1\n"


@dataclass(frozen=True)
class Build:
    """An image that can be built, or, while something is ``todo``, only looked at."""

    tag: str
    digest: str
    """64 hex digits over everything that shapes the result, and nothing else."""
    files: Mapping[str, bytes]
    """The build context by path, with ``Dockerfile``."""
    missing: tuple[str, ...] = ()
    """Key paths of the profile that are ``todo``."""
    origin: str = ""
    """The image's directory or profile, for messages."""
    deviations: tuple[str, ...] = ()
    """Where the image differs from what its authors publish, for people."""
    known_defects: tuple[str, ...] = ()
    """Faults of these versions, for people."""
    machine: str = ""
    """What ``uname -m`` prints where the image runs; empty where nobody says."""
    cuda: str | None = None
    gpus: tuple[str, ...] = ()
    """Compute capabilities that it is compiled for, such as ``12.1a``."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Build arguments that limit the build and don't shape the result."""
    needs: Resources = field(default_factory=Resources)
    """What the build takes of the node that it runs on, as far as the profile says it."""


def build_of(image_dir: str, profile: str | None, tag: str) -> Build:
    """The build that ``templates/images/<image_dir>`` describes with ``profile``.

    UserError for an unknown directory or profile, for every mistake in the
    profile, and for a profile where the Dockerfile is a plain one.
    """
    files = image_files.find(image_dir)
    if files.template is not None:
        return _from_profile(files, files.template, profile, tag)
    if profile is not None:
        raise UserError(
            f"{files.where}: has a plain {DOCKERFILE}, which takes no profile; leave "
            f"build_profile out of the recipe, or make it a {image_files.TEMPLATE}"
        )
    context = files.plain()
    return Build(tag=tag, digest=_digest(context), files=context, origin=files.where)


def build_command(build: Build) -> list[str]:
    """The ``docker build`` that reads ``context_tar`` from its input.

    Run it with ``DOCKER_BUILDKIT=1``. UserError while something is ``todo``.
    """
    refuse_unknown(build)
    return [
        "docker", "build",
        "--network", "host",
        "--progress", "plain",
        "--label", f"{LABEL}={build.digest}",
        "--tag", build.tag,
        *_build_arguments(build),
        "-",
    ]  # fmt: skip


def refuse_unknown(build: Build) -> None:
    """UserError that lists what is ``todo`` in the build's profile, if anything is."""
    if build.missing:
        wanted = "".join(f"\n  {path}" for path in build.missing)
        raise UserError(
            f"{build.origin}: the image {build.tag} can't be built: these facts are still "
            f'"{image_profile.TODO}" in its profile:{wanted}\n'
            "Fill them in; a fact that nobody knows must not be guessed."
        )


def context_tar(build: Build) -> bytes:
    """The build context as a tar, the same bytes for the same files.

    Scripts (files that begin with ``#!``) are executable, whatever they were on disk.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(build.files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _from_profile(files: ImageFiles, template: str, name: str | None, tag: str) -> Build:
    path = files.profile(name)
    profile = image_profile.load(path)
    origin = f"{files.where}/profiles/{name}.toml"
    context = files.context()
    refuse_absent(profile, context, origin)
    text = dockerfile(template, profile, origin)
    context |= files.shared(text)
    context[DOCKERFILE] = text.encode()
    limits = profile.resources or Resources()
    return Build(
        tag=tag,
        digest=_digest(context),
        files=context,
        missing=profile.missing(),
        origin=origin,
        deviations=profile.deviations,
        known_defects=profile.known_defects,
        machine=profile.target.machine,
        cuda=profile.target.cuda,
        gpus=profile.target.gpus,
        arguments={"JOB_GIB": str(limits.job_gib)} if limits.job_gib else {},
        needs=limits,
    )


def _build_arguments(build: Build) -> list[str]:
    limits = [f"{name}={value}" for name, value in sorted(build.arguments.items())]
    return [word for value in (*limits, *PROXIES) for word in ("--build-arg", value)]


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(_DIGEST_OF)
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()
