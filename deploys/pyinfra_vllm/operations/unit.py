"""Operation: the gang's systemd unit on a node."""

from __future__ import annotations

from pyinfra.api import StringCommand, operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.operations.common import Commands, change, look, place, show, show_file
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import FILE_MODE, Release
from pyinfra_vllm.unit_files import broken_promises, unit_files

ASIDE = ".set-aside"
"""Behind the name of a drop-in that systemd is to read no more."""


@operation()
@changing
def installed(release: Release) -> Commands:
    """Unit file and tmpfiles rules in place, the unit enabled; nothing is started or stopped.

    systemd is reloaded only when a file changed: a reload can take the GPU from
    running containers (nvidia-container-toolkit #48, #1227). A drop-in that others have made
    stays, unless it overrides what the gang's healing rests on: then it gets another name,
    under which systemd doesn't read it.

    + release: what the gang is to serve
    """
    unit = paths.unit(release.content.gang.name)
    state = look(release)
    known = state.unit.required
    wrong = []
    for path, text in unit_files(release.content.gang.name).items():
        found = state.file(path)
        if file_is_right(found, text):
            continue
        show_file(path, found, text, FILE_MODE)
        wrong.append(placement.file(path, text, FILE_MODE))
    aside = broken_promises(unit, known.drop_in_keys)
    for path, keys in aside.items():
        show(f"Will set {path} aside: it overrides {', '.join(keys)}")
    if known.needs_reload:
        show(f"Will reload systemd: {unit} has changed since systemd read it")
    if not known.is_enabled:
        show(f"Will enable {unit} (is: {known.enabled or 'unknown to systemd'})")
    if wrong:
        yield from change(place(wrong))
    for path in aside:
        yield from change(StringCommand("mv", "-T", path, f"{path}{ASIDE}"))
    if wrong or aside or known.needs_reload:
        yield from change(StringCommand("systemctl", "daemon-reload"))
    if not known.is_enabled:
        yield from change(StringCommand("systemctl", "--quiet", "enable", unit))
