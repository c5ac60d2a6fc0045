"""Values of secret variables: a file that only root reads, handed to docker by environment.

The file is placed by the deploy. It holds a random salt beside the values, so that what is
said of it to others (a slow, salted hash) gives nothing away.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from . import paths
from .errors import Unmet

ROUNDS = 20_000
"""Of PBKDF2; the deploy and the node state use the same number."""


def file(gang: str) -> str:
    """Where the values are, mode 0600."""
    return f"{paths.gang_root(gang)}/secrets.json"


def used(gang: str) -> str:
    """Hashes of what the engine got at its last start."""
    return f"{paths.RUN_ROOT}/{gang}/secrets.used"


def digest(salt: str, value: str) -> str:
    """What may be said of a value."""
    data = value.encode("utf-8", "surrogateescape")
    return hashlib.pbkdf2_hmac("sha256", data, salt.encode(), ROUNDS).hex()


def check(gang: str, names: Iterable[str]) -> dict[str, str]:
    """The values of ``names``; Unmet when one isn't on this node."""
    wanted = tuple(names)
    _, values = _read(gang) if wanted else ("", {})
    lacking = [name for name in wanted if name not in values]
    if lacking:
        raise Unmet(
            f"{file(gang)} has no {', '.join(lacking)}, which this release needs; run the deploy"
        )
    return {name: values[name] for name in wanted}


def environ(gang: str, argv: Sequence[str]) -> dict[str, str]:
    """Environment of the docker client that runs ``argv``: this process's own, and the values of
    the variables that it names without a value. Notes, by hash, what the engine gets.
    """
    options = argv[: argv.index("--entrypoint")] if "--entrypoint" in argv else argv
    names = [word for flag, word in pairwise(options) if flag == "--env" and "=" not in word]
    values = check(gang, names)
    _note(gang, values)
    return {**os.environ, **values}


def _read(gang: str) -> tuple[str, dict[str, str]]:
    try:
        document = json.loads(paths.here(file(gang)).read_text(encoding="utf-8"))
        return str(document["salt"]), {str(k): str(v) for k, v in document["values"].items()}
    except FileNotFoundError:
        return "", {}
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not the reason: it may quote the file.
        raise Unmet(f"{file(gang)}: can't be understood; run the deploy again") from None


def _note(gang: str, values: dict[str, str]) -> None:
    path = paths.here(used(gang))
    if not values:
        path.unlink(missing_ok=True)
        return
    salt, _ = _read(gang)
    document = {"salt": salt, "digests": {n: digest(salt, v) for n, v in values.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_private(path, json.dumps(document))


def _write_private(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    partial.replace(path)
