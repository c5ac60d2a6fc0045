"""What is kept of a start that ended, and what kind of request was at work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pyinfra_vllm.agent import evidence, paths
from pyinfra_vllm.agent.evidence import last_told
from pyinfra_vllm.agent.last_request import last_request

CHAT = 'INFO: 10.0.0.9:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
TEXT = 'INFO: 10.0.0.9:1 - "POST /v1/completions HTTP/1.1" 200 OK'
PROBE = 'INFO: 127.0.0.1:1 - "POST /v1/completions?probe HTTP/1.1" 200 OK'
HEALTH = 'INFO: 127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK'
FAILED = 'INFO: 10.0.0.9:1 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error'
DUMP = (
    "(EngineCore pid=9) ERROR [dump_input.py:79] Dumping scheduler output for model execution: "
    "SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=chatcmpl-8f{}-0-a1,"
    "prompt_token_ids_len=812,mm_features=[],sampling_params=SamplingParams(n=1, "
    "structured_outputs={}, extra_args=None),block_ids=([1],)"
)
NEXT_STEP = (
    "(EngineCore pid=9) ERROR [dump_input.py:79] Dumping scheduler output for model execution: "
    "SchedulerOutput(scheduled_new_reqs=[], scheduled_cached_reqs=CachedRequestData("
    "req_ids=['cmpl-b2'],resumed_req_ids=set())"
)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([], None),
        ([HEALTH, PROBE], None),
        ([TEXT, CHAT, PROBE, HEALTH], "/v1/chat/completions"),
        ([CHAT, DUMP.format(1, "None"), FAILED], "/v1/chat/completions, 812 prompt tokens"),
        (
            [DUMP.format(1, "StructuredOutputsParams(json='{}')"), "Traceback", FAILED],
            "/v1/chat/completions, structured output, 812 prompt tokens",
        ),
        ([CHAT, NEXT_STEP, FAILED], "/v1/completions"),
        ([TEXT, "Received request chatcmpl-7a: params: …"], "/v1/chat/completions"),
        (["Received request chatcmpl-7a: params: …", TEXT], "/v1/completions"),
    ],
)
def test_kind_of_the_last_request(lines: list[str], kind: str | None) -> None:
    assert last_request(lines) == kind


class Evidence:
    """A node whose journal is a file."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.journal = root / "journal"
        program = root / "journalctl"
        program.write_text(f'#!/bin/sh\necho "$@" > {root}/asked\ncat {self.journal}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{root}:/usr/bin:/bin")
        monkeypatch.setenv(paths.ROOT_VARIABLE, str(root))
        monkeypatch.setenv("INVOCATION_ID", "1a2b")
        self.root = root
        self.folder = paths.here(paths.evidence("main"))

    def keep(self, start: int, lines: list[str]) -> dict[str, Any]:
        self.journal.write_text("\n".join(lines) + "\n")
        first = {"rank": 2, "exit_code": 137, "text": "engine exited with code 137"}
        about = {"start": start, "nonce": f"{start:032x}", "exit_code": 0, "first": first}
        evidence.keep("main", about)
        (file,) = self.folder.glob(f"start-{start:06d}-*.json")
        os.utime(file, (start, start))
        document: dict[str, Any] = json.loads(file.read_text())
        return document


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evidence:
    return Evidence(tmp_path, monkeypatch)


def test_last_lines_codes_first_rank_and_request_are_kept(kept: Evidence) -> None:
    lines = [CHAT, *(f"frame {number}" for number in range(200)), "x" * 9000]
    document = kept.keep(7, lines)
    assert document["first"]["rank"] == 2
    assert document["first"]["exit_code"] == 137
    assert document["exit_code"] == 0
    assert document["last_request"] == "/v1/chat/completions"
    assert document["lines"][-2:] == ["frame 199", "x" * 500]
    assert len(document["lines"]) == 60
    assert "_SYSTEMD_INVOCATION_ID=1a2b" in (kept.root / "asked").read_text()
    assert kept.folder.stat().st_mode & 0o777 == 0o700


def test_ten_starts_are_kept(kept: Evidence) -> None:
    for start in range(1, 14):
        kept.keep(start, ["x"])
    left = sorted(int(file.name.split("-")[1]) for file in kept.folder.iterdir())
    assert left == list(range(4, 14))


def test_without_a_journal_the_rest_is_kept(kept: Evidence) -> None:
    (kept.root / "journalctl").write_text("#!/bin/sh\nexit 1\n")
    kept.journal.touch()
    assert kept.keep(1, [])["lines"] == []


_LINES = [
    "100.5 node-0 python3[7]: Loading safetensors checkpoint shards:  10% Completed",
    "101.5 node-0 python3[7]: starting: engine starts",
    '102.5 node-0 python3[7]: INFO: 127.0.0.1 - "POST /v1/completions HTTP/1.1" 503',
    "103.5 node-0 python3[7]: start 3: docker run --pull never",
]


def test_only_what_the_engine_says_of_itself_is_progress() -> None:
    assert last_told(_LINES) == 100.5
    assert last_told([*_LINES, "104.0 node-0 docker[9]: Capturing CUDA graphs"]) == 104.0
    assert last_told(_LINES[1:]) is None
    assert last_told(["x", "-- No entries --", "y node-0 docker[9]: z"]) is None
