"""The metrics that the agent writes for node_exporter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths, textfile
from pyinfra_vllm.agent.status import Status
from pyinfra_vllm.agent.textfile import Textfile

DIGEST = "a" * 64
SERVING = Status(
    agent="x", pid=1, gang="main", release=DIGEST, rank=2, phase="serving", since=1000.5,
    detail="", engine_started=990.0, last_failure=None, start=12,
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(paths.ROOT_VARIABLE, str(tmp_path))
    folder = paths.here(f"{paths.releases('main')}/{DIGEST}")
    folder.mkdir(parents=True)
    (folder / "launch.json").write_text(json.dumps({"recipe": 'odd "name"'}))
    return tmp_path


def samples(text: str) -> dict[str, float]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_release_rank_start_phase_and_times_are_told(root: Path) -> None:
    assert Textfile("main").tell(SERVING) == ""
    found = samples((root / "run/pyinfra-vllm/main/metrics.prom").read_text())
    here = 'gang="main",rank="2"'
    assert found[f'pyinfra_vllm_info{{{here},release="{DIGEST}",recipe="odd \\"name\\""}}'] == 1
    assert found[f'pyinfra_vllm_phase{{{here},phase="serving"}}'] == 1
    assert found[f'pyinfra_vllm_phase{{{here},phase="failed"}}'] == 0
    assert found[f"pyinfra_vllm_phase_since_seconds{{{here}}}"] == 1000.5
    assert found[f"pyinfra_vllm_start{{{here}}}"] == 12
    assert found[f"pyinfra_vllm_deployed_seconds{{{here}}}"] > 0


def test_collapses_are_counted_over_runs_of_the_agent_and_ends_on_request_are_not(
    root: Path,
) -> None:
    for phase in ("failed", "failed", "stopping", "failed"):
        run = Textfile("main")
        run.tell(SERVING)
        run.tell(replace(SERVING, phase=phase))  # type: ignore[arg-type]
        run.tell(replace(SERVING, phase=phase, detail="more is known"))  # type: ignore[arg-type]
    Textfile("main").tell(replace(SERVING, phase="failed", engine_started=None))
    found = samples((root / "run/pyinfra-vllm/main/metrics.prom").read_text())
    assert found['pyinfra_vllm_collapses_total{gang="main",rank="2"}'] == 3


def test_it_is_written_where_node_exporter_looks_and_every_half_minute(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root / textfile.paths.TEXTFILES.lstrip("/")
    folder.mkdir(parents=True)
    run = Textfile("main")
    run.tell(SERVING)
    path = folder / "pyinfra-vllm-main.prom"
    assert sorted(folder.iterdir()) == [path] and path.stat().st_mode & 0o777 == 0o644
    inode = path.stat().st_ino
    run.tell(SERVING)
    assert path.stat().st_ino == inode
    monkeypatch.setattr(textfile, "EVERY", 0.0)
    run.tell(SERVING)
    assert path.stat().st_ino != inode


def test_a_folder_that_can_not_be_written_costs_nothing_but_the_metrics(root: Path) -> None:
    (root / "run").write_text("")
    assert "metrics" in Textfile("main").tell(SERVING)
