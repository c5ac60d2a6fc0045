"""Operation: the gang's systemd unit on a node."""

from __future__ import annotations

from pyinfra.api import StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.operations.common import Commands, change, look, place, show, show_file
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import FILE_MODE, Release
from pyinfra_vllm.unit_files import unit_files


@operation()
@changing
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
        show_file(path, found, text, FILE_MODE)
        wrong.append(placement.file(path, text, FILE_MODE))
    if wrong:
        yield from change(place(wrong))
    if wrong or state.unit.required.needs_reload:
        yield from change(StringCommand("systemctl", "daemon-reload"))
    if not state.unit.required.is_enabled:
        show(f"Will enable {unit}")
        yield from change(StringCommand("systemctl", "--quiet", "enable", unit))
