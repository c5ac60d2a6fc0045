"""What systemd reads for one gang: the same text for every release. Pure."""

from __future__ import annotations

from pyinfra_vllm.agent import paths
from pyinfra_vllm.rendering import render


def unit_files(gang: str) -> dict[str, str]:
    """Path on the node -> text."""
    return {
        f"{paths.UNIT_ROOT}/{paths.unit(gang)}": render(
            "systemd/vllm.service.j2", gang=gang, paths=paths
        ),
        paths.TMPFILES: render("systemd/tmpfiles.conf.j2", gang=gang, paths=paths),
    }
