"""A /sys/class/infiniband made by hand: the ports of a GB10 node, as they are known to look."""

from __future__ import annotations

from pathlib import Path

UNUSED = "0000:0000:0000:0000:0000:0000:0000:0000"
LINK_LOCAL = "fe80:0000:0000:0000:4ebb:47ff:fe00:0001"


def port(root: Path, hca: str, interface: str, address: str, state: str = "4: ACTIVE") -> None:
    """One device with one port; with an ``address``, entry 3 of its GIDs is RoCE v2 over IPv4."""
    folder = root / hca / "ports" / "1"
    _write(folder / "state", state)
    _write(folder / "phys_state", "5: LinkUp" if "ACTIVE" in state else "3: Disabled")
    _write(folder / "rate", "200 Gb/sec (4X HDR)" if "ACTIVE" in state else "40 Gb/sec (4X QDR)")
    _write(folder / "link_layer", "Ethernet")
    _write(folder / "counters" / "port_xmit_data", "1234567")
    _write(folder / "counters" / "port_rcv_data", "7654321")
    (root / hca / "device" / "net" / interface).mkdir(parents=True)
    gids = {0: (LINK_LOCAL, "IB/RoCE v1"), 1: (LINK_LOCAL, "RoCE v2")}
    if address:
        gids |= {2: (mapped(address), "IB/RoCE v1"), 3: (mapped(address), "RoCE v2")}
    for index in range(6):
        gid, kind = gids.get(index, (UNUSED, ""))
        _write(folder / "gids" / str(index), gid)
        if kind:  # the kernel answers EINVAL for the attributes of an unused entry
            _write(folder / "gid_attrs" / "types" / str(index), kind)
            _write(folder / "gid_attrs" / "ndevs" / str(index), interface)


def mapped(address: str) -> str:
    """The GID that stands for an IPv4 address."""
    digits = "".join(f"{int(part):02x}" for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
