"""Four GB10 nodes (DGX Spark) with one fabric: copy this file and put in what you have.

    pyinfra inventory/gb10.py debug-inventory --json        shows it, and reaches no node

Plain pyinfra: any connector, group_data and ``_sudo`` setting works as it does elsewhere. The
keys that begin with ``vllm_`` are explained in inventory/README.md. Helpers begin with ``_``,
because pyinfra takes every other list of this file for hosts.
"""


def _spark(rank: int) -> tuple[str, dict[str, object]]:
    """Spark ``rank``: what differs between the nodes is numbers in the same places."""
    return (
        # The node's name in plans, messages and logs.
        f"spark-{rank}",
        {
            # How this machine reaches the node; the fabric plays no part in it.
            "ssh_hostname": f"192.168.1.{10 + rank}",
            # Who logs in. ssh keys, ports and jump hosts come from ~/.ssh/config.
            "ssh_user": "nvidia",
            # Docker, systemd and /var/lib need root. Where sudo asks for a password, add
            # --same-sudo-password to the command.
            "_sudo": True,
            # The place in the gang, from 0 to 3, each once. Rank 0 is the head: it serves the
            # API, and its fabric address is where the others meet.
            "vllm_rank": rank,
            # The address on the fabric, of the first interface below: what the ranks call each
            # other by. It must not move.
            "vllm_fabric_address": f"192.168.100.{10 + rank}",
            # The port's two logical interfaces, each in a subnet of its own. NCCL and Gloo open
            # their sockets there.
            "vllm_interfaces": ["enp1s0f0np0", "enP2p1s0f0np0"],
            # The RDMA devices of the same port (ls /sys/class/infiniband). An empty list means
            # sockets: it works, and is slow.
            "vllm_hcas": ["rocep1s0f0", "roceP2p1s0f0"],
            # Where the NAS has the Hugging Face cache: the folder with models--ORG--NAME in it.
            "vllm_hf_cache": "/mnt/nas/huggingface/hub",
        },
    )


# The group "gb10" is this file; the group "spark" is this list.
spark = [_spark(rank) for rank in range(4)]
