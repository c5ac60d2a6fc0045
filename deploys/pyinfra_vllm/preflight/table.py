"""The table of checks: name, reason, the parts of the node state that each needs."""

from __future__ import annotations

from pyinfra_vllm.preflight import docker, fabric, gang, gpu, machine, model_files, others, storage
from pyinfra_vllm.preflight.finding import Check

FIRST = (
    Check("root", "docker, systemd and /var/lib need it", ("system",), machine.root),
    Check("docker", "the engine is a container", (), docker.docker),
    Check("state", "a deploy compares with it", (), docker.state),
)
"""When one of these fails on a node, nothing further is asked there."""

NODE = (
    Check("architecture", "the image's profile", ("system",), gpu.architecture),
    Check("compute-capability", "the image's profile", ("gpus",), gpu.compute_capability),
    Check("driver", "docs.nvidia.com/deploy/cuda-compatibility", ("gpus",), gpu.driver),
    Check("container-runtime", "docker run --gpus all", ("docker", "gpus"), gpu.container_runtime),
    Check("gpu-users", "memory is shared on GB10", ("gpus", "containers"), gpu.gpu_users),
    Check("engines", "memory is shared on GB10", ("engines", "containers"), gpu.engines),
    Check("other-gangs", "a node is in one gang", ("leftovers",), others.other_gangs),
    Check("memory", "vLLM checks it at its start", ("system", "containers"), machine.memory),
    Check("swap", "a full GB10 stalls", ("system",), machine.swap),
    Check("hugepages", "proc(5)", ("sysctls",), machine.hugepages),
    Check("cma", "/proc/meminfo", ("system",), machine.cma),
    Check("pending", "the next boot", ("pending", "docker", "system"), machine.pending),
    Check("io-uring", "sysctl kernel.io_uring_disabled", ("sysctls",), machine.io_uring),
    Check("rdma-devices", "NCCL falls back to sockets", ("rdma",), fabric.rdma_devices),
    Check("memlock", "docker run --ulimit memlock=-1", ("docker",), docker.memlock),
    Check("hcas", "vllm_hcas", ("rdma",), fabric.hcas),
    Check("gid", "NCCL_IB_GID_INDEX", ("rdma",), fabric.gid),
    Check("fabric-address", "vllm_fabric_address", ("interfaces",), fabric.fabric_address),
    Check("interfaces", "vllm_interfaces", ("interfaces",), fabric.interfaces),
    Check("subnets", "ip(7): one route for a subnet", ("interfaces",), fabric.subnets),
    Check("mtu", "RDMA packets of 4096 bytes", ("interfaces",), fabric.mtu),
    Check("reach", "ranks call each other", ("peers",), fabric.reach),
    Check("ports", "the head listens there", ("listeners",), fabric.ports),
    Check("clock", "logs and leases", ("system",), machine.clock),
    Check("hf-cache", "vllm_hf_cache", ("snapshots",), storage.hf_cache),
    Check("model", "the recipe's model", ("snapshots",), model_files.snapshot),
    Check("local-files", "composed_model.local_files", ("local_files",), model_files.local_files),
    Check("engram", "a hole reads as zeros", ("copies", "local_files"), model_files.engram),
    Check("hard-links", "link(2): EXDEV", ("local_files", "disks", "unit"), storage.hard_links),
    Check("ageing", "tmpfiles.d(5)", ("ageing",), storage.ageing),
    Check("local-caches", "caches break when shared", ("mounts",), storage.local_caches),
    Check("disk-images", "docker load", ("docker", "images"), docker.disk_images),
    Check("disk-releases", "a release is staged", ("disks",), storage.disk_releases),
)
"""Asked of every node that answers."""

GANG = (
    Check("stop-foreign", "--data stop_foreign", (), on_gang=others.stop_foreign),
    Check("same-revision", "all ranks load one model", ("snapshots",), on_gang=gang.same_revision),
    Check("same-system", "ranks run in step", ("system", "docker"), on_gang=gang.same_system),
    Check("same-fabric", "ranks run in step", ("rdma", "interfaces"), on_gang=gang.same_fabric),
    Check("image", "the recipe's image", ("images",), on_gang=docker.image),
    Check("api-key", "vllm serve --api-key", (), on_gang=gang.api_key),
)
"""Asked once for the gang."""
