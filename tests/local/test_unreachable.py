"""Hosts that can't be reached, as the subcommands tell of them."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "pyinfra-vllm"


def _hang_up(server: socket.socket) -> None:
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


@pytest.mark.parametrize("words", [("plan", "tiny-cpu-1x"), ("status",)])
def test_an_ssh_server_that_hangs_up_is_a_line_and_no_traceback(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        data = {"ssh_hostname": "127.0.0.1", "ssh_port": server.getsockname()[1], "vllm_rank": 0}
        data["vllm_hf_cache"] = "/hub"
        inventory = tmp_path / "one.py"
        inventory.write_text(f"nodes = [('spark-0', {data})]\n")
        done = subprocess.run(
            [str(PROGRAM), words[0], str(inventory), *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        server.shutdown(socket.SHUT_RDWR)
    assert done.returncode == 1
    assert "spark-0: " in done.stdout and "SSH error" in done.stdout
    assert "Traceback" not in done.stderr and "paramiko" not in done.stderr, done.stderr
