"""Every file that a deploy would put on the nodes, as a folder; no node is reached.

    NODE/etc/systemd/system/vllm-main.service ...    as on the node
    NODE/var/lib/pyinfra-vllm/main/current/...       the release, under its stable name
    image/Dockerfile ...                             what the image is built from
    SHA256SUMS                                       all of these: `sha256sum --check` proves them

Secrets are no part of it: a release knows their names only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from pyinfra_vllm import agent_archive, fabric, image, model, preflight
from pyinfra_vllm.agent import paths
from pyinfra_vllm.catalog import Found
from pyinfra_vllm.cluster import Gang, plain_name
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.image import Build
from pyinfra_vllm.node.state import NodeState, parse
from pyinfra_vllm.recipe import Recipe
from pyinfra_vllm.release import Content, Release, release_of
from pyinfra_vllm.unit_files import members_text, unit_files

SUMS = "SHA256SUMS"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SUM = re.compile(r"[0-9a-f]{64}  (.+)")
_SAVE = "pyinfra-vllm facts INVENTORY --save DIR"

States = Mapping[str, NodeState]


def release(found: Found, gang: Gang, states: States) -> tuple[Release, Build | None]:
    """The release that a deploy would stage, and the build of its image.

    ``states`` are saved ones, by node; none are needed when the recipe pins commits and the
    inventory says the fabric. UserError when something is left open.
    """
    recipe = found.recipe
    build = None
    if recipe.docker_image_dir is not None:
        build = image.build_of(recipe.docker_image_dir, recipe.build_profile, recipe.docker_image)
    whole = _with_fabric(gang, states)
    revisions = _revisions(recipe, whole, states)
    content = Content(found.name, recipe, whole, build.digest if build else None, revisions)
    return release_of(content), build


def files(made: Release, build: Build | None) -> dict[str, bytes]:
    """Relative path -> content of everything, without the sums."""
    gang = made.content.gang
    found: dict[str, bytes] = {}
    for node in gang.nodes:
        root = plain_name(node.name)
        texts = {**unit_files(gang.name), paths.members(gang.name): members_text(gang, node)}
        texts |= {f"{paths.current(gang.name)}/{n}": t for n, t in made.files(node).items()}
        found |= {f"{root}{path}": text.encode() for path, text in texts.items()}
        found[f"{root}{paths.AGENT}"] = agent_archive.archive()
    if build:
        found |= {f"image/{name}": content for name, content in build.files.items()}
    return dict(sorted(found.items()))


def write(out: Path, wanted: Mapping[str, bytes]) -> list[str]:
    """Make ``out`` hold exactly ``wanted`` and their sums; paths that changed, in order.

    UserError when it has files that no earlier rendering wrote.
    """
    lines = (f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in wanted.items())
    contents = {**wanted, SUMS: ("\n".join(lines) + "\n").encode()}
    earlier = _earlier(out)
    changed = [name for name in earlier if name not in contents]
    for name in changed:
        _remove(out, name)
    for name, data in contents.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            changed.append(name)
    return sorted(name for name in changed if name != SUMS)


def saved_states(folder: Path, gang: Gang) -> dict[str, NodeState]:
    """States of the gang's nodes that ``folder`` has as HOST.json, by node."""
    if not folder.is_dir():
        raise UserError(f"--facts {folder}: there is no such folder; save states: {_SAVE}")
    states = {}
    for node in gang.nodes:
        path = folder / f"{plain_name(node.name)}.json"
        if path.is_file():
            try:
                states[node.name] = parse(path.read_text(encoding="utf-8"))
            except (UserError, UnicodeDecodeError) as error:
                raise UserError(f"{path}: {error}") from None
    return states


def _with_fabric(gang: Gang, states: States) -> Gang:
    lacking = [node.name for node in gang.nodes if node.derived and node.name not in states]
    if lacking:
        keys = sorted({key for node in gang.nodes for key in node.derived})
        raise UserError(
            f"the inventory leaves out {', '.join(keys)}, so saved states are needed, and there "
            f"are none of {', '.join(lacking)}; save them ({_SAVE}) and add --facts DIR"
        )
    return fabric.derived(gang, states)


def _revisions(recipe: Recipe, gang: Gang, states: States) -> dict[str, str]:
    pins = dict(model.repos(recipe))
    if all(pin and _COMMIT.fullmatch(pin) for pin in pins.values()):
        return {repo: str(pin) for repo, pin in pins.items()}
    lacking = [node.name for node in gang.nodes if node.name not in states]
    if lacking:
        unpinned = ", ".join(r for r, pin in pins.items() if not (pin and _COMMIT.fullmatch(pin)))
        raise UserError(
            f"the recipe pins no commit of {unpinned}, so saved states are needed, and there are "
            f"none of {', '.join(lacking)}; save them ({_SAVE}) and add --facts DIR, "
            "or pin it (composed_model.sources.revision, 40 hex digits)"
        )
    return preflight.revisions_of(recipe, gang, states)


def _earlier(out: Path) -> list[str]:
    """What an earlier rendering wrote into ``out``."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return []
    sums = out / SUMS
    if not sums.is_file():
        raise UserError(f"--out {out}: isn't empty, and nothing was rendered there before")
    found = [_SUM.fullmatch(line) for line in sums.read_text(encoding="utf-8").splitlines()]
    names = [match[1] for match in found if match]
    if len(names) != len(found) or any(".." in n.split("/") or n.startswith("/") for n in names):
        raise UserError(f"{sums}: is not what a rendering writes; choose another --out")
    return names


def _remove(out: Path, name: str) -> None:
    path = out / name
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == out or not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()
