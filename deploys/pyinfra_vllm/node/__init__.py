"""The state of a node: the script that reads it there, and the models of what it prints."""

from pyinfra_vllm.node.part import Part
from pyinfra_vllm.node.query import Query, SnapshotQuery
from pyinfra_vllm.node.script import script
from pyinfra_vllm.node.state import NodeState, parse

__all__ = ["NodeState", "Part", "Query", "SnapshotQuery", "parse", "script"]
