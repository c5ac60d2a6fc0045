"""Operation: the gang's systemd unit on a node."""

from __future__ import annotations

from pyinfra.api import StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.operations.common import Commands, change, explained, look, place, show, show_diff
from pyinfra_vllm.release import FILE_MODE, Release
from pyinfra_vllm.rendering import render


@operation()
@explained
def installed(release: Release) -> Commands:
    """Unit file and tmpfiles rules in place, the unit enabled; nothing is started or stopped.

    systemd is reloaded only when a file changed: a reload can take the GPU from
    running containers (nvidia-container-toolkit #48, #1227).

    + release: what the gang is to serve
    """
    unit = paths.unit(release.content.gang.name)
    state = look(release)
    wrong = []
    for path, text in unit_files(release.content.gang.name).items():
        found = state.file(path)
        if file_is_right(found, text):
            continue
        show_diff(path, found.text if found else None, text)
        wrong.append(placement.file(path, text, FILE_MODE))
    if wrong:
        yield from change(place(wrong))
    if wrong or state.unit.required.needs_reload:
        yield from change(StringCommand("systemctl", "daemon-reload"))
    if not state.unit.required.is_enabled:
        show(f"Will enable {unit}")
        yield from change(StringCommand("systemctl", "--quiet", "enable", unit))


def unit_files(gang: str) -> dict[str, str]:
    """Path -> text of what systemd reads for one gang; the same for every release."""
    return {
        f"{paths.UNIT_ROOT}/{paths.unit(gang)}": render(
            "systemd/vllm.service.j2", gang=gang, paths=paths
        ),
        paths.TMPFILES: render("systemd/tmpfiles.conf.j2", gang=gang, paths=paths),
    }
