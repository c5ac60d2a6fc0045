"""A head of two workers on real files, whose clock a test moves by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyinfra_vllm.agent import paths
from pyinfra_vllm.agent.events import Moment, Wished
from pyinfra_vllm.agent.ledger import Ledger
from pyinfra_vllm.agent.said import End, Said, Start
from pyinfra_vllm.agent.state import State
from pyinfra_vllm.agent.tether import Tether

NEW, OLD, OLDER = "b" * 64, "a" * 64, "c" * 64
HERE = Said("here")


class Head:
    """A head of two workers whose clock is moved by hand."""

    def __init__(self, root: Path) -> None:
        self.folder = root / paths.gang_root("main").lstrip("/")
        self.said: list[str] = []
        self.now = 1000.0
        tether = Tether(0, (None, HERE, HERE), Start(1, "0" * 32), "assembling", 3)
        self.state = State("waiting", 0.0, tether, ("rank 0", "rank 1", "rank 2"))
        for release in (NEW, OLD, OLDER):
            (self.folder / "releases" / release).mkdir(parents=True)
            (self.folder / "releases" / release / paths.LAUNCH).touch()
        self.begin()

    def begin(self) -> None:
        """A new life of the agent."""
        self.ledger = Ledger("main", self.said.append)

    def wish(self, release: str = NEW, switch: int = 2, **keys: Any) -> None:
        document = {"schema": 1, "release": release, "switch": switch, "previous": OLD}
        document |= {"trial": {"seconds": 60}, "earlier": [OLDER], "kind": "deploy"}
        fresh = self.folder / "new"
        fresh.write_text(json.dumps({**document, **keys}))
        fresh.rename(self.folder / "wanted.json")

    def wanted(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "wanted.json").read_text()))

    def look(self, seconds: float = 0.0) -> Wished:
        self.now += seconds
        return self.ledger.wished(self.state, self._moment())

    def _moment(self) -> Moment:
        return Moment(5000.0 + self.now, self.now)

    def hear(self, rank: int, said: Said | None) -> None:
        tether = self.state.tether
        heard = (*tether.heard[:rank], said, *tether.heard[rank + 1 :])
        self.state = replace(self.state, tether=replace(tether, heard=heard))

    def to(self, **keys: Any) -> None:
        """The tether changes, and the ledger watches."""
        before = self.state
        phase = keys.pop("phase", before.phase)
        self.state = replace(before, phase=phase, tether=replace(before.tether, **keys))
        self.ledger.watch(before, self.state, self._moment())

    def start(self, release: str = NEW) -> None:
        self.to(stage="running", served=False, wanted=release, end=None)
        self.state = replace(self.state, engine_started=self._moment())

    def die(self, code: int | None = 1) -> None:
        self.to(stage="ending", end=End(1, code, "died"), phase="failed")
        self.to(stage="assembling", served=False, end=None)
        self.begin()

    def history(self) -> list[dict[str, Any]]:
        path = self.folder / "history.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def events(self) -> list[tuple[str, int]]:
        return [(line["event"], line["switch"]) for line in self.history()]
