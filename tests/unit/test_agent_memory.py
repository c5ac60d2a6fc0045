"""Is there room: the disks, and the unified memory of a GB10 as nvidia-smi and /proc tell it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_launch import launch_of
from pyinfra_vllm.agent import memory
from pyinfra_vllm.agent.errors import Unmet

GB10 = 127_600_000
"""MemTotal in KiB: 121.7 GiB."""
GPU = launch_of(
    options=["--gpus", "all"], argv=["vllm", "serve", "--gpu-memory-utilization", ".88"]
)


class Box:
    """A node: what nvidia-smi answers, and how much memory there is."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.dropped = root / "drop_caches"
        monkeypatch.setenv("PATH", f"{root}:/usr/bin:/bin")
        monkeypatch.setattr(memory, "_DROP_CACHES", self.dropped)
        self.smi("[N/A]", "")
        self.free(120_000_000, 120_000_000)

    def smi(self, total: str, apps: str, code: int = 0) -> None:
        program = self.root / "nvidia-smi"
        program.write_text(
            f'#!/bin/sh\ncase "$1" in *memory.total*) echo "{total}" ;; '
            f"*compute-apps*) printf '{apps}' ;; esac\nexit {code}\n"
        )
        program.chmod(0o755)

    def free(self, free: int, available: int) -> None:
        self.meminfo = self.root / "meminfo"
        self.meminfo.write_text(
            f"MemTotal: {GB10} kB\nMemFree: {free} kB\nMemAvailable: {available} kB\n"
        )

    def check(self) -> None:
        memory.check(GPU, self.meminfo)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    return Box(tmp_path, monkeypatch)


def test_room_enough_touches_nothing(box: Box) -> None:
    box.check()
    assert not box.dropped.exists()


def test_page_cache_in_the_way_is_dropped(box: Box) -> None:
    box.free(20_000_000, 119_000_000)
    box.check()
    assert box.dropped.read_text() == "1"


def test_too_little_memory_says_both_figures(box: Box) -> None:
    box.free(20_000_000, 113_000_000)
    with pytest.raises(Unmet, match=r"107\.8 GiB of memory are available, .* needs 108\.1 GiB"):
        box.check()


def test_the_gate_is_the_share_of_all_memory_and_one_gib(box: Box) -> None:
    edge = int(GB10 * 0.88) + (1 << 20)
    box.free(edge + 1, edge + 1)
    box.check()
    box.free(edge - 1, edge - 1)
    with pytest.raises(Unmet):
        box.check()


def test_foreign_compute_process_is_named_with_user_and_size(box: Box) -> None:
    box.smi("[N/A]", f"{os.getpid()}, 2048, python\\n1, 300, gnome-remote-desktop\\n")
    with pytest.raises(Unmet, match=rf"python \(pid {os.getpid()}, user \w+, 2048 MiB\); end it"):
        box.check()


def test_desktop_below_one_gib_is_no_trouble(box: Box) -> None:
    box.smi("[N/A]", "1, 258, gnome-remote-desktop\\n2, [N/A], Xorg\\n")
    box.check()


def test_card_with_memory_of_its_own_is_left_to_vllm(box: Box) -> None:
    box.smi("143771", "1, 100000, python\\n")
    box.free(1, 1)
    box.check()


def test_without_gpus_or_nvidia_smi_nothing_is_asked(box: Box) -> None:
    box.free(1, 1)
    memory.check(launch_of(), box.meminfo)
    box.smi("[N/A]", "", code=9)
    box.check()


@pytest.mark.parametrize(
    ("words", "share"),
    [
        (("--gpu-memory-utilization", "0.5"), 0.5),
        (("--gpu_memory_utilization=0.7",), 0.7),
        (("--max-model-len", "5"), 0.9),
    ],
)
def test_share_is_read_as_vllm_reads_it(words: tuple[str, ...], share: float) -> None:
    assert memory.share(words) == share


def test_full_disk_is_named_and_a_missing_folder_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.check_disks([str(tmp_path), "/nowhere"])
    full = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(Unmet, match=f"the disk of {tmp_path} is full: 0 MiB are free, 64 MiB"):
        memory.check_disks([str(tmp_path)])
