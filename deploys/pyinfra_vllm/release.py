"""A release: all files that one deploy puts on the nodes of a gang, and its digest. Pure."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyinfra_vllm import fabric, model, resources, serving
from pyinfra_vllm.agent import container, paths
from pyinfra_vllm.agent.document import Document
from pyinfra_vllm.agent.launch import parse
from pyinfra_vllm.cluster import Gang, Node, plain_name
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.questions import Question
from pyinfra_vllm.recipe import Recipe
from pyinfra_vllm.secret_values import Secrets

LAUNCH_SCHEMA = 1
RELEASE_SCHEMA = 1

FILE_MODE = 0o644
"""Mode of every file of a release: they hold no secrets."""

# Stands for the digest while the digest is computed over files that contain it.
_SLOT = "0" * 64


@dataclass(frozen=True)
class Content:
    """What is served, and by whom: everything that a release is computed from."""

    recipe_name: str
    recipe: Recipe
    gang: Gang
    build: str | None
    """Build digest of the image, or None for an image that others made."""
    revisions: Mapping[str, str]
    """Commit of every repository of the model."""
    secrets: Secrets = field(default=Secrets(), compare=False)
    """Values of secret variables, where they are known; no part of the release."""

    @property
    def question(self) -> Question:
        """What must be known of a node for this content."""
        return Question(self.gang.name, self.recipe, self.build, self.gang.addresses)


@dataclass(frozen=True)
class Release:
    """The rendered files of every rank, under one digest that all ranks share."""

    content: Content
    digest: str
    ranks: tuple[Mapping[str, str], ...]

    @property
    def directory(self) -> str:
        """Where the release lies on each node."""
        return release_directory(self.content.gang.name, self.digest)

    @property
    def composed_directory(self) -> str | None:
        """Where the composed model lies on each node, None without one."""
        if self.content.recipe.composed_model is None:
            return None
        return paths.composed(self.content.gang.name, self.digest)

    def files(self, node: Node) -> Mapping[str, str]:
        """File name -> text of one node."""
        return self.ranks[node.rank]

    def manifest(self, node: Node) -> dict[str, Any] | None:
        """The link plan of one node, None without a composed model."""
        text = self.files(node).get("model.manifest")
        return json.loads(text) if text else None


def release_directory(gang: str, digest: str) -> str:
    """Where a release lies on each node."""
    return f"{paths.releases(gang)}/{digest}"


def release_of(content: Content) -> Release:
    """The release of ``content``; equal content has the equal digest on any machine."""
    identity = [_identity(content, node) for node in content.gang.nodes]
    digest = hashlib.sha256(_canonical(identity).encode()).hexdigest()
    ranks = tuple(_files(content, node, digest) for node in content.gang.nodes)
    return Release(content, digest, ranks)


def _identity(content: Content, node: Node) -> Mapping[str, str]:
    """Files that the engine's behaviour depends on: no words that are only for people."""
    shaping = ("launch.json", "model.manifest", "seccomp.json")
    files = _files(content, node, _SLOT)
    return {name: files[name] for name in shaping if name in files}


def _files(content: Content, node: Node, digest: str) -> dict[str, str]:
    launch = _launch(content, node, digest)
    composed = content.recipe.composed_model
    files = {
        "launch.json": _pretty(launch),
        "command.txt": _command_text(launch),
        "release.json": _pretty(_about(content, digest)),
        "seccomp.json": _seccomp(),
    }
    if composed:
        directory = paths.composed(content.gang.name, digest)
        plan = model.manifest(
            content.recipe, node.rank, node.hf_cache, directory, content.revisions
        )
        files["model.manifest"] = _pretty(plan)
    return files


def _launch(content: Content, node: Node, digest: str) -> dict[str, Any]:
    recipe, gang = content.recipe, content.gang
    composed = paths.composed(gang.name, digest)
    caches = f"{paths.CACHE_ROOT}/{content.build or _plain(recipe.docker_image)}"
    seccomp = release_directory(gang.name, digest) + "/seccomp.json"
    return {
        "schema": LAUNCH_SCHEMA,
        "gang": gang.name,
        "release": digest,
        "recipe": content.recipe_name,
        "rank": node.rank,
        "size": gang.size,
        "image": {"build": content.build, "tag": recipe.docker_image},
        "container": paths.container(gang.name),
        "labels": {
            paths.LABEL_GANG: gang.name,
            paths.LABEL_RELEASE: digest,
            paths.LABEL_RANK: str(node.rank),
            paths.LABEL_RECIPE: content.recipe_name,
        },
        "options": list(serving.options(recipe, node, seccomp)),
        "mounts": [asdict(m) for m in serving.mounts(recipe, node, composed, caches)],
        "environ": serving.environ(recipe, node),
        "secrets": list(recipe.secrets),
        "argv": list(serving.argv(recipe, gang, node)),
        "composed": {"directory": composed} if recipe.composed_model else None,
        "fabric_address": node.fabric_address,
        "api": asdict(serving.api(recipe)),
        "start_timeout": recipe.start_timeout,
    }


def _command_text(launch: dict[str, Any]) -> str:
    """The command as a person would paste it; the agent finds the image's Id itself."""
    image = launch["image"]["tag"]
    command = container.run(parse(Document("launch.json", launch)), image)
    lines: list[list[str]] = [[]]
    for word in command:
        if word.startswith("--") or word == image:
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return " \\\n    ".join(" ".join(line) for line in lines) + "\n"


def _about(content: Content, digest: str) -> dict[str, Any]:
    """What people want to know of a release; no part of its identity."""
    derived = {plain_name(name): found for name, found in fabric.record(content.gang).items()}
    return {
        "schema": RELEASE_SCHEMA,
        "release": digest,
        "recipe": content.recipe_name,
        "name": content.recipe.name,
        "model": content.recipe.model,
        "parent_model": content.recipe.parent_model,
        "build": content.build,
        "revisions": dict(content.revisions),
        "nodes": [plain_name(node.name) for node in content.gang.nodes],
        **({"derived": derived} if derived else {}),
    }


def _plain(tag: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", tag)


def _seccomp() -> str:
    path = resources.find("templates", "seccomp.json")
    if path is None:
        raise UserError("templates/seccomp.json is missing; reinstall pyinfra-vllm")
    return path.read_text(encoding="utf-8")


def _pretty(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
