"""What a resume does on the head."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pyinfra_vllm.operations.pause import resume_script

BY = {"who": "me@h'ere", "revision": None, "dirty": True}


def test_a_resume_asks_for_the_same_once_more_and_the_history_calls_it_so(tmp_path: Path) -> None:
    wanted, marker = tmp_path / "wanted.json", tmp_path / "paused"
    known = {"schema": 1, "release": "a", "switch": 4, "kind": "deploy", "trial": {"seconds": 9}}
    wanted.write_text(json.dumps(known))
    marker.touch()
    script = resume_script(str(marker), str(wanted), BY)
    subprocess.run([sys.executable, "-c", script], check=True)
    assert json.loads(wanted.read_text()) == {**known, "switch": 5, "kind": "resume", "by": BY}
    wanted.unlink()
    subprocess.run([sys.executable, "-c", script], check=True)
    assert list(tmp_path.iterdir()) == []
