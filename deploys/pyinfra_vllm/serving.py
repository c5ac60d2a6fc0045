"""What one rank of a gang runs: argv, environ, mounts and container options. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra_vllm import flags
from pyinfra_vllm.cluster import Gang, Node
from pyinfra_vllm.recipe import Recipe

MASTER_PORT = 29501
"""Port of the gang's rendezvous on the head: vLLM's own default for ``--master-port``."""

DEFAULT_API_PORT = 8000
"""Port of ``vllm serve`` when the recipe says nothing."""

_HUB_IN_CONTAINER = "/root/.cache/huggingface/hub"
_CACHES_IN_CONTAINER = "/root/.cache"


@dataclass(frozen=True)
class Mount:
    """A bind mount. ``create``: the agent makes the source; otherwise it must exist."""

    source: str
    target: str
    read_only: bool = True
    create: bool = False


@dataclass(frozen=True)
class Api:
    """Where the head's API answers *on the head*, and under which model name."""

    address: str
    port: int
    model: str


def argv(recipe: Recipe, gang: Gang, node: Node) -> tuple[str, ...]:
    """Whole command of one rank: entrypoint, model, the recipe's words in order, then ours."""
    model = recipe.composed_model.mount if recipe.composed_model else recipe.model
    return (
        *recipe.entrypoint,
        model,
        *recipe.args,
        *_parallelism(recipe),
        *_place_in_gang(gang, node),
    )


def _parallelism(recipe: Recipe) -> tuple[str, ...]:
    wanted = {
        "--tensor-parallel-size": str(recipe.tensor_parallel_size),
        "--pipeline-parallel-size": str(recipe.pipeline_parallel_size),
        "--distributed-executor-backend": recipe.distributed_backend,
    }
    if recipe.tensor_parallel_size * recipe.pipeline_parallel_size == 1:
        del wanted["--distributed-executor-backend"]
    said = [flag for flag in wanted if flags.value_of(recipe.args, flag) is not None]
    return tuple(
        word for flag, value in wanted.items() if flag not in said for word in (flag, value)
    )


def _place_in_gang(gang: Gang, node: Node) -> tuple[str, ...]:
    if gang.size == 1:
        return ()
    return (
        "--nnodes", str(gang.size),
        "--node-rank", str(node.rank),
        "--master-addr", gang.head.fabric_address,
        "--master-port", str(MASTER_PORT),
        *(("--headless",) if node.rank else ()),
    )  # fmt: skip


def environ(recipe: Recipe, node: Node) -> dict[str, str]:
    """The recipe's environment in its order, then what belongs to the node.

    The agent adds ``NCCL_IB_GID_INDEX`` at each start: the index moves between boots.
    """
    ours = {
        "VLLM_HOST_IP": node.fabric_address,
        "NCCL_SOCKET_IFNAME": ",".join(node.interfaces),
        "GLOO_SOCKET_IFNAME": ",".join(node.interfaces),
        "NCCL_IB_HCA": ",".join(node.hcas),
    }
    return {**recipe.env, **{name: value for name, value in ours.items() if value}}


def options(recipe: Recipe, node: Node, seccomp: str) -> tuple[str, ...]:
    """Options of ``docker run`` that don't depend on a start; ``seccomp`` is a path on the node.

    io_uring needs the profile and memlock (Docker >= 25 blocks it by default); private IPC
    keeps ``--shm-size`` meaningful and semaphores safe from logind's RemoveIPC.
    """
    return (
        "--network", "host",
        "--init",
        "--ipc", "private",
        *(("--shm-size", recipe.shm_size) if recipe.shm_size else ()),
        *(("--gpus", "all") if node.gpus else ()),
        *(("--device", "/dev/infiniband") if node.hcas else ()),
        "--cap-add", "IPC_LOCK",
        "--ulimit", "memlock=-1",
        "--ulimit", "stack=67108864",
        "--ulimit", "nofile=1048576",
        "--oom-score-adj", "500",
        "--security-opt", f"seccomp={seccomp}",
    )  # fmt: skip


def mounts(recipe: Recipe, node: Node, composed: str, caches: str) -> tuple[Mount, ...]:
    """Bind mounts of one rank.

    Links in the ``composed`` directory point into the Hugging Face cache, so that
    cache is mounted where they point. ``caches`` is node-local: compile caches
    break when nodes share them.
    """
    compile_caches = Mount(caches, _CACHES_IN_CONTAINER, read_only=False, create=True)
    if recipe.composed_model is None:
        return (compile_caches, Mount(node.hf_cache, _HUB_IN_CONTAINER))
    return (
        compile_caches,
        Mount(node.hf_cache, node.hf_cache),
        Mount(composed, recipe.composed_model.mount),
    )


def api(recipe: Recipe) -> Api:
    """Where to ask the head: ``--host`` and ``--port`` of the args are honoured."""
    host = flags.value_of(recipe.args, "--host")
    port = flags.value_of(recipe.args, "--port")
    served = flags.value_of(recipe.args, "--served-model-name")
    fallback = recipe.composed_model.mount if recipe.composed_model else recipe.model
    return Api(
        address="127.0.0.1" if host in (None, "", "0.0.0.0", "::") else str(host),
        port=int(port) if port else DEFAULT_API_PORT,
        model=served or fallback,
    )
