"""A toy lock for the GB10 image's own Dockerfile: the same template, built for real in minutes.

``make`` writes two folders: ``devel``, the context of the image that the toy starts from
(repositories, wheels, a played cuobjdump), and ``templates``, a profile and its context to lay
over the shipped ones by working there.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toy_sources import CUOBJDUMP, repository, sha256, wheel

DIRECTORY = "glm53-jovian-r27"
DEVEL = "toy/devel:1"
_LOCK = (
    Path(__file__).parents[1] / "templates" / "images" / "vllm-cpu" / "context" / "requirements.txt"
)
_SOURCES = {
    "vllm": "vllm",
    "b12x": "b12x",
    "lmcache": "lmcache",
    "flashkda": "flash_kda",
    "deepgemm": "deep_gemm",
}
_PATCHED = (("torch", "one", "two"), ("torch", "two", "three"), ("cutlass", "one", "two"))


@dataclass(frozen=True)
class Toy:
    """``profile``: text of the profile; ``commits``, ``trees``, ``patches``: what it locks."""

    folder: Path
    profile: str
    commits: Mapping[str, str]
    trees: Mapping[str, str]
    patches: tuple[str, ...]

    def lay(self, name: str, old: str = "", new: str = "") -> None:
        """Write profile ``name``, with one text in it replaced."""
        assert old in self.profile
        place = self.folder / "templates" / "images" / DIRECTORY / "profiles"
        (place / f"{name}.toml").write_text(self.profile.replace(old, new, 1))


def make(folder: Path, base: str, versions: Mapping[str, str]) -> Toy:
    """``base``: the image below all; ``versions``: Debian package -> version to be had."""
    context = folder / "templates" / "images" / DIRECTORY / "context"
    context.mkdir(parents=True)
    (context.parent / "profiles").mkdir()
    locked = _devel(folder / "devel", base)
    wheels = [_packaging(), *_wheels(folder / "devel" / "locked")]
    (context / "toy.txt").write_text("\n".join(wheels) + "\n")
    patches = []
    for number, (package, old, new) in enumerate(_PATCHED):
        place = f"{package}/notes.txt"
        text = f"--- a/{place}\n+++ b/{place}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
        (context / f"toy{number}.patch").write_text(text)
        patches.append(sha256(text.encode()))
    commits = {name: commit for name, (commit, _) in locked.items()}
    trees = {name: tree for name, (_, tree) in locked.items()}
    profile = _profile(base, locked, patches, versions)
    return Toy(folder, profile, commits, trees, tuple(patches))


def _devel(folder: Path, base: str) -> dict[str, tuple[str, str]]:
    """Context of the image with the repositories in it; commit and tree of each."""
    folder.mkdir()
    (folder / "cuobjdump").write_text(CUOBJDUMP)
    (folder / "cuobjdump").chmod(0o755)
    (folder / "Dockerfile").write_text(
        f"FROM {base}\n"
        "COPY repos /repos\n"
        "COPY locked /locked\n"
        "COPY cuobjdump /usr/local/cuda/bin/\n"
    )
    work = folder.parent / "repos"
    work.mkdir()
    (folder / "repos").mkdir()
    found = {}
    for name, package in _SOURCES.items():
        found[name] = repository(work / name, package)
        (work / name).rename(folder / "repos" / name)
    return found


def _wheels(folder: Path) -> list[str]:
    """Lines of the lock for what no source builds."""
    folder.mkdir()
    lines = []
    for name in ("torch", "cutlass", "flashinfer-python"):
        file, content = wheel(name)
        (folder / file).write_bytes(content)
        lines.append(f"{name} @ file:///locked/{file} --hash=sha256:{sha256(content)}")
    return lines


def _packaging() -> str:
    """The real package, pinned as another image pins it: a check needs it in every image."""
    entries = _LOCK.read_text().replace("\\\n", " ").splitlines()
    return next(entry for entry in entries if entry.startswith("packaging=="))


def _profile(
    base: str,
    locked: Mapping[str, tuple[str, str]],
    patches: list[str],
    versions: Mapping[str, str],
) -> str:
    def pins(*names: str) -> str:
        return "".join(f'{name} = "{versions[name]}"\n' for name in names)

    lines = [
        'requirements = "toy.txt"',
        'imports = ["torch", "vllm", "b12x", "lmcache", "flash_kda", "deep_gemm"]',
        'compiled = ["vllm", "lmcache", "flash_kda"]',
        'waived = ["vllm:flashinfer-python"]',
        "",
        f'[[images]]\nname = "devel"\nreference = "{DEVEL}"\n',
        f'[[images]]\nname = "runtime"\nreference = "{base}"\n',
        f'[target]\nmachine = "{platform.machine()}"\npython = "3.11"\n'
        'cuda = "13.2"\ngpus = ["12.1a"]\n',
        '[versions]\ntorch = "2.13.0"\nvllm = "1.0"\n',
        f'[libraries]\nliburing = "{versions["liburing-dev"].partition("-")[0]}"\n',
    ]
    for name, (commit, tree) in locked.items():
        lines.append(
            f'[[sources]]\nname = "{name}"\nrepository = "file:///repos/{name}"\n'
            f'commit = "{commit}"\ntree = "{tree}"\n'
        )
    for number, (package, _, _) in enumerate(_PATCHED):
        lines.append(
            f'[[patches]]\npackage = "{package}"\nfile = "toy{number}.patch"\n'
            f'sha256 = "{patches[number]}"\n'
        )
    lines.append(f"[apt.build]\n{pins('git', 'patch')}")
    lines.append(f"[apt.runtime]\n{pins('liburing-dev', 'pkg-config')}")
    lines.append("[resources]\njob_gib = 1\n")
    return "\n".join(lines)
