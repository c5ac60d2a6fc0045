"""The proof of RDMA, from counters and NCCL's own words (made by hand: no RDMA was at hand)."""

from __future__ import annotations

from pyinfra_vllm import fabric_proof
from pyinfra_vllm.node.models import Rdma, RdmaPort

HCAS = ("rocep1s0f0", "roceP2p1s0f0")
IB = "spark-0:81:81 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0"
SOCKET = "spark-0:81:81 [0] NCCL INFO Using network Socket"


def ports(words: int) -> Rdma:
    counters = {"port_xmit_data": words, "port_rcv_data": words}
    return Rdma(ports=tuple(RdmaPort(hca=hca, counters=counters) for hca in HCAS))


def test_counters_that_have_moved_are_a_proof() -> None:
    assert fabric_proof.verdict(HCAS, ports(1000), ports(10_000_000), []) is None


def test_a_word_of_nccl_is_a_proof() -> None:
    assert fabric_proof.verdict(HCAS, ports(7), ports(7), [IB]) is None


def test_counters_that_stand_still_tell_of_sockets() -> None:
    why = fabric_proof.verdict(HCAS, ports(1000), ports(1010), [])
    assert why == "NCCL fell back to sockets: rocep1s0f0, roceP2p1s0f0 carried 0 KiB"


def test_sockets_in_the_log_are_believed_whatever_else_used_the_devices() -> None:
    why = fabric_proof.verdict(HCAS, ports(0), ports(10_000_000), [SOCKET])
    assert why is not None and "Using network Socket" in why


def test_other_devices_prove_nothing() -> None:
    assert fabric_proof.verdict(("mlx5_9",), ports(0), ports(10_000_000), []) is not None
