"""What lies in ``templates/images/<dir>/``.

Either a plain ``Dockerfile``, taken as it is with all files beside it, or

    Dockerfile.j2            rendered with a profile
    profiles/<name>.toml     the source lock, see image_profile.py
    context/...              files for the build, as they are

``templates/images/shared/`` has the files that every rendered Dockerfile can
use; those that it names are in its build context. A file in the working
directory's templates/ wins over the package's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyinfra_vllm import resources
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.suggest import did_you_mean

DOCKERFILE = "Dockerfile"
TEMPLATE = "Dockerfile.j2"
_SHARED = "shared"
_CONTEXT = "context/"
_PROFILES = "profiles/"
_SUFFIX = ".toml"
_NEVER = {"__pycache__", ".git"}


@dataclass(frozen=True)
class ImageFiles:
    """The files of one image's directory by relative path."""

    where: str
    paths: Mapping[str, Path]

    @property
    def template(self) -> str | None:
        """The name of the directory's Dockerfile.j2 for ``render``; None for a plain Dockerfile."""
        name = self.where.removeprefix("templates/")
        return f"{name}/{TEMPLATE}" if TEMPLATE in self.paths else None

    @cached_property
    def profiles(self) -> Mapping[str, Path]:
        """Profiles by name."""
        return {
            path.removeprefix(_PROFILES).removesuffix(_SUFFIX): file
            for path, file in self.paths.items()
            if path.startswith(_PROFILES) and path.endswith(_SUFFIX)
        }

    def plain(self) -> dict[str, bytes]:
        """The build context of a plain Dockerfile: every file of the directory."""
        return {name: path.read_bytes() for name, path in self.paths.items()}

    def context(self) -> dict[str, bytes]:
        """The build context of a Dockerfile.j2, without the Dockerfile and shared files."""
        return {
            name.removeprefix(_CONTEXT): path.read_bytes()
            for name, path in self.paths.items()
            if name.startswith(_CONTEXT)
        }

    @staticmethod
    def shared(dockerfile: str) -> dict[str, bytes]:
        """The shared files that ``dockerfile`` names: no other shapes the image."""
        files = _files(_SHARED).items()
        return {name: path.read_bytes() for name, path in files if name in dockerfile}

    def profile(self, name: str | None) -> Path:
        """The file of profile ``name``. UserError says which there are."""
        if name is None:
            names = ", ".join(sorted(self.profiles)) or "none is there yet"
            raise UserError(
                f"{self.where}: the image needs a profile; "
                f"set build_profile in the recipe to one of: {names}"
            )
        if name not in self.profiles:
            raise UserError(
                f"{self.where}/{_PROFILES}{name}{_SUFFIX}: no such profile; "
                f"{did_you_mean(name, self.profiles)}"
            )
        return self.profiles[name]


def find(image_dir: str) -> ImageFiles:
    """The directory of an image. UserError when there is none, or no Dockerfile in it."""
    where = f"templates/images/{image_dir}"
    paths = _files(image_dir)
    if not paths or image_dir == _SHARED:
        raise UserError(f"{where}: no such image; {did_you_mean(image_dir, known())}")
    present = {DOCKERFILE, TEMPLATE} & paths.keys()
    if len(present) != 1:
        found = "both" if present else "neither"
        raise UserError(f"{where}: needs either {TEMPLATE} or {DOCKERFILE}, and has {found}")
    return ImageFiles(where, paths)


def known() -> tuple[str, ...]:
    """The names of all images."""
    folders = [root / "images" for root in resources.roots("templates")]
    names = {path.name for folder in folders if folder.is_dir() for path in _folders(folder)}
    return tuple(sorted(names - {_SHARED}))


def _files(image_dir: str) -> dict[str, Path]:
    """All files of a directory; of two with one path, the first root's."""
    found: dict[str, Path] = {}
    for root in resources.roots("templates"):
        folder = root / "images" / image_dir
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if path.is_file() and not _NEVER & set(relative.parts):
                found.setdefault(relative.as_posix(), path)
    return found


def _folders(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_dir())
