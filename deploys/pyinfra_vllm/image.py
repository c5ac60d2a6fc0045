"""What an image is built from, and the digest that is its identity.

``templates/images/<dir>/`` holds either a plain ``Dockerfile``, taken as it is
with all files beside it, or

    Dockerfile.j2            rendered with a profile
    profiles/<name>.toml     the source lock, see image_profile.py
    context/...              files for the build, as they are

and ``templates/images/shared/`` has the files that every rendered Dockerfile
can use. A file in the working directory's templates/ wins over the package's.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyinfra_vllm import image_profile, resources
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image_profile import Profile
from pyinfra_vllm.rendering import render
from pyinfra_vllm.suggest import did_you_mean

LABEL = "pyinfra-vllm.build"
"""The image label that holds the build digest; not in the Dockerfile, which the digest covers."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Build arguments that docker knows by itself and keeps out of the image; values from the node."""

_DOCKERFILE = "Dockerfile"
_TEMPLATE = "Dockerfile.j2"
_SHARED = "shared"
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
    """The image directory and profile, for messages."""
    deviations: tuple[str, ...] = ()
    """Where the image differs from what its authors publish, for people."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Build arguments that limit the build and don't shape the result."""


def build_of(image_dir: str, profile: str | None, tag: str) -> Build:
    """The build that ``templates/images/<image_dir>`` describes with ``profile``.

    UserError for an unknown directory or profile, for a mistake in the
    profile, and for a profile where the Dockerfile is a plain one.
    """
    found = _files(image_dir)
    if not found:
        raise UserError(f"templates/images/{image_dir}: no such image; {_known_images(image_dir)}")
    if _TEMPLATE in found:
        return _rendered(image_dir, profile, tag, found)
    if _DOCKERFILE not in found:
        raise UserError(f"templates/images/{image_dir}: has no {_TEMPLATE} and no {_DOCKERFILE}")
    if profile is not None:
        raise UserError(
            f"templates/images/{image_dir}: has a plain {_DOCKERFILE}, which takes no profile; "
            f"leave build_profile out of the recipe, or make it a {_TEMPLATE}"
        )
    files = {name: path.read_bytes() for name, path in found.items()}
    return Build(tag=tag, digest=_digest(files), files=files, origin=image_dir)


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
            f"{build.origin}: the image {build.tag} can't be built, these facts are still "
            f'"{image_profile.TODO}" in its profile:{wanted}\n'
            "Fill them in, or bring the finished image to the nodes under this tag."
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


def _rendered(image_dir: str, name: str | None, tag: str, found: Mapping[str, Path]) -> Build:
    profile = image_profile.load(_profile_path(image_dir, name, found))
    files = {path: file.read_bytes() for path, file in _files(_SHARED).items()}
    files |= _below("context/", found)
    _refuse_absent(image_dir, str(name), profile, files)
    text = render(
        f"images/{image_dir}/{_TEMPLATE}",
        profile=profile,
        image=_by_name({image.name: image.pinned for image in profile.images}, "images"),
        source=_by_name({source.name: source for source in profile.sources}, "sources"),
        checks=checks(profile),
    )
    files[_DOCKERFILE] = text.encode()
    limits = profile.resources
    return Build(
        tag=tag,
        digest=_digest(files),
        files=files,
        missing=profile.missing(),
        origin=f"templates/images/{image_dir}/profiles/{name}.toml",
        deviations=profile.deviations,
        arguments={"JOB_GIB": str(limits.job_gib)} if limits else {},
    )


def checks(profile: Profile) -> tuple[str, ...]:
    """The options of ``shared/verify.py`` that prove the finished image."""
    target = profile.target
    return (
        f"--machine {target.machine}",
        f"--python {target.python}",
        *((f"--cuda {target.cuda}",) if target.cuda else ()),
        *(f"--gpu {gpu}" for gpu in target.gpus),
        *(f"--version {name}={version}" for name, version in profile.versions.items()),
        *(f"--import {module}" for module in profile.imports),
    )


def _profile_path(image_dir: str, name: str | None, found: Mapping[str, Path]) -> Path:
    known = {
        path.removeprefix("profiles/").removesuffix(".toml"): file
        for path, file in found.items()
        if path.startswith("profiles/") and path.endswith(".toml")
    }
    if name is None:
        raise UserError(
            f"templates/images/{image_dir}: the image needs a profile; "
            f"set build_profile in the recipe to one of: {', '.join(known) or 'none is there yet'}"
        )
    if name not in known:
        raise UserError(
            f"templates/images/{image_dir}/profiles/{name}.toml: no such profile; "
            f"{did_you_mean(name, known)}"
        )
    return known[name]


def _refuse_absent(image_dir: str, name: str, profile: Profile, files: Mapping[str, bytes]) -> None:
    """UserError for files that the profile names and the context lacks."""
    named = [("requirements", profile.requirements)]
    named += [(f"patches[{index}].file", one.file) for index, one in enumerate(profile.patches)]
    for key, file in named:
        if file not in (None, image_profile.TODO, *files):
            raise UserError(
                f"templates/images/{image_dir}/profiles/{name}.toml: {key}: "
                f"templates/images/{image_dir}/context/{file} doesn't exist; "
                f"{did_you_mean(str(file), files)}"
            )


def _by_name(values: Mapping[str, object], table: str) -> Callable[[str], object]:
    """A function for the template, that says which name of ``table`` the profile lacks."""

    def value(name: str) -> object:
        if name not in values:
            raise UserError(f"the Dockerfile asks for {table} named {name}, add it to the profile")
        return values[name]

    return value


def _build_arguments(build: Build) -> list[str]:
    limits = [f"{name}={value}" for name, value in sorted(build.arguments.items())]
    return [word for value in (*limits, *PROXIES) for word in ("--build-arg", value)]


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(_DIGEST_OF)
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _files(image_dir: str) -> dict[str, Path]:
    """All files of an image's directory by relative path; of two, the first root's wins."""
    found: dict[str, Path] = {}
    for root in resources.roots("templates"):
        folder = root / "images" / image_dir
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.setdefault(path.relative_to(folder).as_posix(), path)
    return found


def _below(prefix: str, found: Mapping[str, Path]) -> dict[str, bytes]:
    return {
        name.removeprefix(prefix): path.read_bytes()
        for name, path in found.items()
        if name.startswith(prefix)
    }


def _known_images(image_dir: str) -> str:
    folders = [root / "images" for root in resources.roots("templates")]
    known = {path.name for folder in folders if folder.is_dir() for path in folder.iterdir()}
    return did_you_mean(image_dir, known - {_SHARED})
