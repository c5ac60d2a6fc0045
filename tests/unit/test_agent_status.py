"""The status file, names, and what the agent may import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyinfra_vllm.agent import paths, status
from pyinfra_vllm.agent.errors import Unmet


def test_failure_survives_the_agent_that_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "main" / "status.json"
    failure = status.Failure(5.0, 137, "r", "killed")
    said = status.Status("d", os.getpid(), "main", "r", 0, "failed", 1.0, "x", 2.0, failure)
    status.write(file, said)
    assert status.last_failure(file) == failure
    document = status.read(file)
    assert document is not None and document["schema"] == 1 and status.runs(document)
    assert [path.name for path in file.parent.iterdir()] == ["status.json"]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"last_failure": {"at": "x"}}'])
def test_status_file_of_whatever_content_stops_nobody(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "status.json"
    if text is not None:
        file.write_text(text)
    assert status.last_failure(file) is None


@pytest.mark.parametrize("name", ["", "Main", "a/b", "-x", "a b", "x" * 33])
def test_gang_name_that_cannot_be_in_a_path_is_refused(name: str) -> None:
    with pytest.raises(Unmet):
        paths.checked_gang(name)


def test_agent_imports_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; sys.path.insert(0, 'deploys'); import pyinfra_vllm.agent.__main__;"
        "own = {m.partition('.')[0] for m in sys.modules};"
        "print(sorted(own - set(sys.stdlib_module_names) - {'__main__', 'pyinfra_vllm'}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
