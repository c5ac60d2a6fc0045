"""The script that is sent to a node: the modules of ``collect`` and a query in one text."""

from __future__ import annotations

from functools import cache
from importlib import resources

from pyinfra_vllm.node.query import Query

COLLECT = "pyinfra_vllm.node.collect"
AGENT = "pyinfra_vllm.agent"
# In the order of their imports: each knows only those before it.
MODULES = (
    "parts",
    "files",
    "secrets",
    "secret_file",
    "engine",
    "system",
    "cache",
    "copies",
    "gang",
    "listeners",
    "network",
    "options",
    "docker",
    "gpu",
    "rdma",
    "mounts",
    "kernel",
    "leftovers",
    "peers",
    "past",
    "metrics",
    "main",
)

NAMES = ("whole",)
"""Modules of the agent that every script carries."""

JUDGES = (
    "errors",
    "document",
    "ranges",
    "holes",
    "safetensors",
    "side_manifest",
    "shares",
    "content",
    "engram",
)
"""Modules of the agent that judge local copies; sent when there are some."""

# Must be readable for any python3: an old one has to get as far as its message.
_BOOTSTRAP = """\
import sys
if sys.version_info < (3, 10):
    print("pyinfra-vllm needs python3 >= 3.10 on the node, this is %d.%d" % sys.version_info[:2])
    sys.exit(3)
import json, types
for name, source in MODULES:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, "<" + name + ">", "exec"), module.__dict__)
sys.modules[{main!r}].main(json.loads(QUERY))
"""


def script(query: Query) -> str:
    """Python source that prints the state of the node it runs on as one line of JSON.

    It is ASCII, as the encoding of the node's session is unknown.
    """
    modules = _modules(bool(query.copies))
    return f"QUERY = {query.model_dump_json()!a}\n{modules}{_bootstrap()}"


def _bootstrap() -> str:
    return _BOOTSTRAP.replace("{main!r}", repr(f"{COLLECT}.main"))


@cache
def _modules(with_judges: bool) -> str:
    """The modules as (name, source); empty parents make their imports of each other work."""
    parents = [(COLLECT.rsplit(".", up)[0], "__path__ = []") for up in (2, 1, 0)]
    agent = [(AGENT, "__path__ = []"), *_sources(AGENT, NAMES + JUDGES * with_judges)]
    return f"MODULES = {[*parents, *agent, *_sources(COLLECT, MODULES)]!a}\n"


def _sources(package: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    folder = resources.files(package)
    return [(f"{package}.{name}", (folder / f"{name}.py").read_text()) for name in names]
