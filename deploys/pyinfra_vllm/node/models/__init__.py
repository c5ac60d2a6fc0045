"""The parts of the node state. Sizes are bytes, times Unix seconds."""

from pyinfra_vllm.node.models.docker import Container, Docker, Image, Mount
from pyinfra_vllm.node.models.files import (
    Composed,
    ComposedEntry,
    FileState,
    PathState,
    Snapshot,
    SnapshotEntry,
)
from pyinfra_vllm.node.models.gang import Agent, AgentStatus, GangFolder, LastFailure, Release, Unit
from pyinfra_vllm.node.models.machine import Disk, Interface, Listener, System

__all__ = [
    "Agent",
    "AgentStatus",
    "Composed",
    "ComposedEntry",
    "Container",
    "Disk",
    "Docker",
    "FileState",
    "GangFolder",
    "Image",
    "Interface",
    "LastFailure",
    "Listener",
    "Mount",
    "PathState",
    "Release",
    "Snapshot",
    "SnapshotEntry",
    "System",
    "Unit",
]
