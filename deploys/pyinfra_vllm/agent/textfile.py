"""Metrics for node_exporter's textfile collector, in the Prometheus text format.

The file is replaced by rename, and written anew every :data:`EVERY` seconds at least: its age
(``node_textfile_mtime_seconds``) says whether the agent lives.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import get_args

from . import paths
from .status import Phase, Status

EVERY = 30.0
_PREFIX = "pyinfra_vllm"
_COLLAPSES = f"{_PREFIX}_collapses_total"
_HELP = {
    "info": ("gauge", "What this node is to serve; always 1."),
    "phase": ("gauge", "1 for the phase that the agent is in, 0 for the others."),
    "phase_since_seconds": ("gauge", "Unix time at which the phase began."),
    "start": ("gauge", "Number of the gang's start that this rank is in, 0 for none."),
    "engine_started_seconds": ("gauge", "Unix time of the engine's start, 0 for none."),
    "deployed_seconds": ("gauge", "Unix time at which the release was last laid down here."),
    "collapses_total": ("counter", "Starts that ended here without anybody asking for it."),
}


class Textfile:
    """The file of one gang. Whatever goes wrong costs the metrics, never the gang."""

    def __init__(self, gang: str) -> None:
        self._gang = gang
        self._path = place(gang)
        self._collapses = _known(self._path)
        self._said: Status | None = None
        self._at = 0.0
        self._recipe: tuple[str | None, str] = (None, "")

    def tell(self, status: Status) -> str:
        """Write what has changed, or is due. Returns what went wrong, "" if nothing."""
        now = time.monotonic()
        if status == self._said and now - self._at < EVERY:
            return ""
        if status.phase == "failed" and (self._said is None or self._said.phase != "failed"):
            # A head that gave up, or a rank that found no start, has had no engine.
            self._collapses += status.engine_started is not None
        self._said, self._at = status, now
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_name(f".{self._path.name}.new")
            fresh.write_text(self._text(status), encoding="utf-8")
            fresh.chmod(0o644)
            fresh.rename(self._path)
        except OSError as error:
            return f"metrics {self._path}: {error.strerror}"
        return ""

    def _text(self, status: Status) -> str:
        rank = "" if status.rank is None else str(status.rank)
        here = {"gang": self._gang, "rank": rank}
        info = {**here, "release": status.release or "", "recipe": self._recipe_of(status.release)}
        values: dict[str, list[tuple[dict[str, str], float]]] = {
            "info": [(info, 1)],
            "phase": [({**here, "phase": p}, p == status.phase) for p in get_args(Phase)],
            "phase_since_seconds": [(here, status.since)],
            "start": [(here, status.start or 0)],
            "engine_started_seconds": [(here, status.engine_started or 0)],
            "deployed_seconds": [(here, _laid(self._gang, status.release))],
            "collapses_total": [(here, self._collapses)],
        }
        lines = []
        for name, samples in values.items():
            kind, text = _HELP[name]
            lines += [f"# HELP {_PREFIX}_{name} {text}", f"# TYPE {_PREFIX}_{name} {kind}"]
            lines += [f"{_PREFIX}_{name}{_labels(at)} {float(value):.10g}" for at, value in samples]
        return "\n".join(lines) + "\n"

    def _recipe_of(self, release: str | None) -> str:
        if self._recipe[0] != release:
            folder = paths.here(f"{paths.releases(self._gang)}/{release}")
            try:
                known = json.loads((folder / paths.LAUNCH).read_text(encoding="utf-8"))
                self._recipe = (release, str(known["recipe"]))
            except (OSError, ValueError, KeyError, TypeError):
                return ""
        return self._recipe[1]


def place(gang: str) -> Path:
    """Where Debian's node_exporter looks, when it is installed; else beside the status file."""
    usual = paths.here(paths.metrics(gang))
    return usual if usual.parent.is_dir() else paths.here(paths.metrics_aside(gang))


def _known(path: Path) -> int:
    """Collapses that earlier runs of the agent have counted."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return sum(int(float(x.rpartition(" ")[2])) for x in lines if x.startswith(_COLLAPSES))
    except (OSError, ValueError):
        return 0


def _laid(gang: str, release: str | None) -> float:
    try:
        return paths.here(f"{paths.releases(gang)}/{release}").stat().st_mtime if release else 0.0
    except OSError:
        return 0.0


def _labels(values: dict[str, str]) -> str:
    quoted = (f'{name}="{value}"'.replace("\n", " ") for name, value in _escaped(values).items())
    return "{" + ",".join(quoted) + "}"


def _escaped(values: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in values.items()}
