"""GPUs and RDMA devices, read from recorded documents and from what is known of GB10."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyinfra_vllm.node.collect import gpu, rdma
from pyinfra_vllm.node.models import Gpus, Rdma
from unit import sysfs

DATA = Path(__file__).parent / "data"


def from_smi(name: str, *capabilities: str) -> Gpus:
    document = (DATA / f"nvidia_smi_{name}.xml").read_text()
    return Gpus.model_validate(gpu.from_smi(document, list(capabilities)))


def test_a_gpu_with_memory_of_its_own_is_understood() -> None:
    found = from_smi("h200", "9.0")
    (device,) = found.devices
    assert (device.name, device.capability, found.cuda) == ("NVIDIA H200", "9.0", "13.0")
    assert (device.memory_total, device.memory_used) == (143771 << 20, 2575 << 20)
    (process,) = found.processes
    assert (process.type, process.name, process.memory) == ("C", "python3", 2566 << 20)


def test_memory_that_is_the_systems_is_unknown_and_not_zero() -> None:
    found = from_smi("gb10", "12.1")
    assert found.devices[0].memory_total is None
    assert [item.type for item in found.processes] == ["G", "G", "C+G", "C"]
    assert found.processes[-1].memory == 20480 << 20


def test_the_driver_is_the_version_of_the_kernel_module() -> None:
    assert gpu.driver_of((DATA / "nvidia_version_h200.txt").read_text()) == "580.159.04"
    closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39\n"
    assert gpu.driver_of(closed) == "535.54.03"
    assert gpu.driver_of("") is None


def test_a_node_without_gpu_says_so_and_fails_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "read_text", lambda path: "")
    found = Gpus.model_validate(gpu.gpus())
    assert found.driver is None and found.devices == () and found.error == ""


def test_what_nvidia_smi_says_when_it_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "read_text", lambda path: "NVRM version: x Kernel Module  1.2.3  x")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nvidia-smi" in gpu.gpus()["error"]
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho Driver/library version mismatch\nexit 18\n")
    program.chmod(0o755)
    found = gpu.gpus()
    assert found["driver"] == "1.2.3"
    assert found["error"] == "nvidia-smi: Driver/library version mismatch"


def test_the_ports_of_rdma_devices_are_read_from_sysfs(tmp_path: Path) -> None:
    sysfs.port(tmp_path, "rocep1s0f0", "enp1s0f0np0", "192.168.100.10")
    sysfs.port(tmp_path, "rocep1s0f1", "enp1s0f1np1", "", state="1: DOWN")
    found = Rdma.model_validate(rdma.rdma(str(tmp_path), "/nowhere"))
    up, down = found.ports
    assert (up.hca, up.state, up.rate, up.interfaces) == (
        "rocep1s0f0", "ACTIVE", 200.0, ("enp1s0f0np0",),
    )  # fmt: skip
    assert [gid.index for gid in up.gids if gid.is_roce_v2_ipv4] == [3]
    assert [gid.index for gid in up.gids] == [0, 1, 2, 3], "unused entries are left out"
    assert up.counters == {"port_xmit_data": 1234567, "port_rcv_data": 7654321}
    assert not down.is_active and not any(gid.is_roce_v2_ipv4 for gid in down.gids)
    assert found.ports_of("rocep1s0f1") == (down,) and found.ports_of("mlx5_0") == ()


def test_a_node_without_rdma_has_no_ports() -> None:
    assert rdma.rdma("/nowhere", "/nowhere") == {"devices": [], "ports": []}
