"""What agents have kept, and what the engine says, as parts of the node state."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path

import pytest

from pyinfra_vllm.node.collect import metrics, past
from pyinfra_vllm.node.collect.parts import Unavailable
from pyinfra_vllm.node.models.past import Ended, Past, Switch


def test_nothing_is_kept_on_a_fresh_node(tmp_path: Path) -> None:
    found = past.past(str(tmp_path), "main")
    assert found == {"starts": 0, "broken": False, "on_trial": "", "ended": [], "switches": []}


def test_the_last_starts_and_switches_are_told_and_torn_files_left_out(tmp_path: Path) -> None:
    home = tmp_path / "main"
    (home / "evidence").mkdir(parents=True)
    for start in range(1, 13):
        about = {"start": start, "ended": 5.0, "first": {"rank": 1, "exit_code": 3, "text": "x"}}
        (home / "evidence" / f"start-{start:06}-a.json").write_text(json.dumps(about))
    (home / "evidence" / "start-000012-a.json").write_text("{")
    (home / "starts.json").write_text(json.dumps({"number": 13, "broken": True, "trial": None}))
    lines = [{"event": "asked"}, {"event": "serving", "at": 9, "engine": 40.5, "without": None}]
    (home / "history.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{torn")
    found = past.past(str(tmp_path), "main")
    assert (found["starts"], found["broken"]) == (13, True)
    assert [one["start"] for one in found["ended"]] == list(range(3, 12))
    assert found["ended"][0]["text"] == "x" and found["ended"][0]["code"] == 3
    assert found["switches"] == [{"at": 9.0, "release": "", "engine": 40.5, "without": None}]


def test_rates_come_from_two_looks_and_a_worker_is_not_asked(tmp_path: Path) -> None:
    count = [0]

    class Engine(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            count[0] += 10
            text = (
                'vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_running{engine="1"} 2\n'
                f"vllm:generation_tokens_total {count[0]}\n# TYPE x\nvllm:kv_cache_usage_perc 0.5\n"
            )
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path / "main" / "current"
    home.mkdir(parents=True)
    launch = {"rank": 0, "api": {"address": "127.0.0.1", "port": server.server_port}}
    (home / "launch.json").write_text(json.dumps(launch))
    assert metrics.metrics(str(tmp_path), "main", None) is None
    found = metrics.metrics(str(tmp_path), "main", 0.05)
    assert found and found["running"] == 3 and found["kv_usage"] == 0.5
    assert found["generation_rate"] and found["prompt_rate"] is None
    (home / "launch.json").write_text(json.dumps({**launch, "rank": 1}))
    assert metrics.metrics(str(tmp_path), "main", 0.05) is None
    (home / "launch.json").write_text(json.dumps(launch))
    server.shutdown()
    server.server_close()
    with pytest.raises(Unavailable, match="refused"):
        metrics.metrics(str(tmp_path), "main", 0.05)


def test_what_somebody_wrote_by_hand_is_no_number(tmp_path: Path) -> None:
    home = tmp_path / "main"
    (home / "evidence").mkdir(parents=True)
    about = {"start": 1, "ended": [], "first": {"rank": "x", "exit_code": {}, "text": 5}}
    (home / "evidence" / "start-000001-a.json").write_text(json.dumps(about))
    (home / "starts.json").write_text('{"number": Infinity}')
    line = {"event": "serving", "at": "x", "release": 5, "engine": {}, "without": "x"}
    (home / "history.jsonl").write_text(json.dumps(line) + "\n" + "[" * 100_000)
    found = Past.model_validate(past.past(str(tmp_path), "main"))
    assert found.starts == 0
    assert found.switches == (Switch(release="5"),)
    assert found.ended == (Ended(start=1, text="5"),)
