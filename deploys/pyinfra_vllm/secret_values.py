"""Values of a recipe's secret variables on the controller: where from, and what nodes lack."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyinfra_vllm.agent.secret_values import digest
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.node.models import SecretFile

MODE = "0600"
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


@dataclass(frozen=True, eq=False)
class Secrets:
    """``values`` by name, never shown. ``unknown``: names without a value on this machine."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    unknown: tuple[str, ...] = ()


def read(names: Iterable[str], file: str | None, environ: Mapping[str, str]) -> Secrets:
    """The values of ``names``: those in ``file`` (``NAME=value`` lines), else of ``environ``.

    UserError when the file can't be read, or when others than its owner can read it.
    """
    wanted = tuple(names)
    known = _of_file(Path(file).expanduser()) if file and wanted else {}
    found = {
        name: known.get(name, environ.get(name, ""))
        for name in wanted
        if name in known or name in environ
    }
    empty = [name for name, value in found.items() if not value]
    if empty:
        raise UserError(f"secrets: {', '.join(empty)}: the value is empty, which no key is")
    return Secrets(found, tuple(name for name in wanted if name not in found))


def differing(secrets: Secrets, found: SecretFile) -> list[str]:
    """Names whose value on a node isn't the controller's."""
    return [
        name
        for name, value in secrets.values.items()
        if not hmac.compare_digest(digest(found.salt, value), found.digests.get(name, ""))
    ]


def lacking(secrets: Secrets, found: SecretFile) -> list[str]:
    """Names that neither this machine nor the node has a value for."""
    return [name for name in secrets.unknown if name not in found.digests]


def lacking_lines(secrets: Secrets, found: Mapping[str, SecretFile]) -> list[str]:
    """A line for each name without a value here and on some nodes; ``found``: by node."""
    nodes = {
        name: [node for node, file in found.items() if name in lacking(secrets, file)]
        for name in secrets.unknown
    }
    return [
        f"secret {name}: {', '.join(lack)} {'have' if len(lack) > 1 else 'has'} no value, and "
        "neither has this machine: set it in the environment, or in a file that vllm_secrets in "
        "the inventory names"
        for name, lack in nodes.items()
        if lack
    ]


def not_in_use(names: Iterable[str], found: SecretFile) -> list[str]:
    """Names whose value the engine got before it was changed on the node."""
    return [name for name in names if not found.in_use.get(name, False)]


def is_private(found: SecretFile) -> bool:
    """Whether only root can read the file."""
    return found.mode == MODE and found.owner == "root"


def _of_file(path: Path) -> dict[str, str]:
    where = f"vllm_secrets: {path}"
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{where}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{where}: isn't UTF-8") from None
    if mode & 0o077:
        raise UserError(f"{where}: others can read it; chmod 600 {path}")
    values = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise UserError(f"{where}:{number}: expected NAME=value")
        values[match[1]] = _unquoted(match[2].strip())
    return values


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value
