"""The parts of the node state. Sizes are bytes, times Unix seconds."""

from pyinfra_vllm.node.models.docker import Bind, Container, Docker, Image
from pyinfra_vllm.node.models.files import (
    Composed,
    ComposedEntry,
    Copy,
    FileState,
    PathState,
    Snapshot,
    SnapshotEntry,
)
from pyinfra_vllm.node.models.gang import (
    Agent,
    AgentStatus,
    GangFolder,
    LastFailure,
    Leftovers,
    Release,
    SecretFile,
    Unit,
)
from pyinfra_vllm.node.models.gpu import Gpu, GpuProcess, Gpus
from pyinfra_vllm.node.models.machine import Clock, Disk, Mount, Pending, Process, Rule, System
from pyinfra_vllm.node.models.network import Gid, Interface, Listener, Peer, Rdma, RdmaPort
from pyinfra_vllm.node.models.past import Ended, Metrics, Past, Switch

__all__ = [
    "Agent",
    "AgentStatus",
    "Bind",
    "Clock",
    "Composed",
    "ComposedEntry",
    "Container",
    "Copy",
    "Disk",
    "Docker",
    "Ended",
    "FileState",
    "GangFolder",
    "Gid",
    "Gpu",
    "GpuProcess",
    "Gpus",
    "Image",
    "Interface",
    "LastFailure",
    "Leftovers",
    "Listener",
    "Metrics",
    "Mount",
    "Past",
    "PathState",
    "Peer",
    "Pending",
    "Process",
    "Rdma",
    "RdmaPort",
    "Release",
    "Rule",
    "SecretFile",
    "Snapshot",
    "SnapshotEntry",
    "Switch",
    "System",
    "Unit",
]
