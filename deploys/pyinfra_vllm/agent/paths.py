"""Names and places on a node; the controller uses the same ones.

The functions give the path as a node knows it. Only :func:`here` looks at
``PYINFRA_VLLM_ROOT``, a folder that stands for ``/`` in tests.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .errors import Unmet

STATE_ROOT = "/var/lib/pyinfra-vllm"
RUN_ROOT = "/run/pyinfra-vllm"
CACHE_ROOT = "/var/cache/pyinfra-vllm"
COMPOSED_ROOT = "/tmp/composed-models"
ENGRAM_ROOT = "/var/tmp/engram-local"
AGENT = "/usr/local/lib/pyinfra-vllm/agent.pyz"
ENGRAM_PLAN = "/var/lib/pyinfra-vllm/engram.json"
"""The copies that were asked for last."""
UNIT_ROOT = "/etc/systemd/system"
TEXTFILES = "/var/lib/prometheus/node-exporter"
TMPFILES = "/etc/tmpfiles.d/pyinfra-vllm.conf"

LABEL_BUILD = "pyinfra-vllm.build"
LABEL_GANG = "pyinfra-vllm.gang"
LABEL_RELEASE = "pyinfra-vllm.release"
LABEL_RANK = "pyinfra-vllm.rank"
LABEL_RECIPE = "pyinfra-vllm.recipe"
LABEL_START = "pyinfra-vllm.start"

TETHER_PORT = 29503
"""Where the head's agent listens for the other ranks, on its fabric address."""

LAUNCH = "launch.json"
MANIFEST = "model.manifest"

ROOT_VARIABLE = "PYINFRA_VLLM_ROOT"
_GANG = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def checked_gang(name: str) -> str:
    """``name`` itself when it can be a part of unit, container and folder names, else Unmet."""
    if _GANG.fullmatch(name):
        return name
    raise Unmet(
        f"gang name {name!r}: expected at most 32 lower-case letters, digits and dashes, "
        "a letter or digit first"
    )


def unit(gang: str) -> str:
    """Name of the gang's systemd unit."""
    return f"vllm-{gang}.service"


def container(gang: str) -> str:
    """Name of the gang's container on every node."""
    return f"vllm-{gang}"


def gang_root(gang: str) -> str:
    """Folder of everything that one gang keeps on a node."""
    return f"{STATE_ROOT}/{gang}"


def releases(gang: str) -> str:
    """Folder of the releases, one folder a digest."""
    return f"{STATE_ROOT}/{gang}/releases"


def current(gang: str) -> str:
    """Link to the release that this node starts."""
    return f"{STATE_ROOT}/{gang}/current"


def members(gang: str) -> str:
    """Who belongs to the gang: the same on every node but for the rank."""
    return f"{STATE_ROOT}/{gang}/gang.json"


def secret(gang: str) -> str:
    """What only members of the gang know; 0600, the same on every node."""
    return f"{STATE_ROOT}/{gang}/secret"


def wanted(gang: str) -> str:
    """On the head: which release the gang is to serve. Replaced by rename, which is the switch."""
    return f"{STATE_ROOT}/{gang}/wanted.json"


def paused(gang: str) -> str:
    """On the head: while this file is there, the gang doesn't serve."""
    return f"{STATE_ROOT}/{gang}/paused"


def starts(gang: str) -> str:
    """On the head: number of the last start, and how starts ended."""
    return f"{STATE_ROOT}/{gang}/starts.json"


def lease(gang: str) -> str:
    """On the head: touched while somebody runs a release that is only lent."""
    return f"{STATE_ROOT}/{gang}/lease"


def history(gang: str) -> str:
    """On the head: what was asked for and how it ended, one JSON document a line."""
    return f"{STATE_ROOT}/{gang}/history.jsonl"


def evidence(gang: str) -> str:
    """Folder with one file for each of the last starts that ended."""
    return f"{STATE_ROOT}/{gang}/evidence"


def status_file(gang: str) -> str:
    """What the agent says of itself, replaced by rename; gone after a boot."""
    return f"{RUN_ROOT}/{gang}/status.json"


def lock(gang: str) -> str:
    """On the head: which operator changes the gang now. Gone after a boot, as its holder's work."""
    return f"{RUN_ROOT}/{gang}.lock"


def metrics(gang: str) -> str:
    """For node_exporter, where Debian's package looks; only when that folder is there."""
    return f"{TEXTFILES}/pyinfra-vllm-{gang}.prom"


def metrics_aside(gang: str) -> str:
    """For node_exporter, when its own folder isn't there; gone after a boot."""
    return f"{RUN_ROOT}/{gang}/metrics.prom"


def composed_root(gang: str) -> str:
    """Folder of the gang's composed models, one folder a release."""
    return f"{COMPOSED_ROOT}/{gang}"


def composed(gang: str, release: str) -> str:
    """Composed model of one release."""
    return f"{COMPOSED_ROOT}/{gang}/{release}"


def here(path: str) -> Path:
    """``path`` on this machine."""
    return Path(os.environ.get(ROOT_VARIABLE, "/")) / path.lstrip("/")
