"""Operation: the files of a release on a node."""

from __future__ import annotations

from pyinfra.api import operation

from pyinfra_vllm import placement
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.operations.common import (
    Commands,
    change,
    explained,
    look,
    place,
    show,
    show_diff,
    this_node,
)
from pyinfra_vllm.release import FILE_MODE, Release


@operation()
@explained
def staged(release: Release) -> Commands:
    """All files of the release in its own directory; what serves now is not touched.

    + release: what the gang is to serve
    """
    desired = release.files(this_node(release))
    found_release = look(release).release(release.digest)
    present = found_release.files if found_release else {}
    wrong = {name for name, text in desired.items() if not file_is_right(present.get(name), text)}
    strangers = set(present) - set(desired)
    if not wrong and not strangers:
        return
    for name in sorted(wrong):
        found = present.get(name)
        path = f"{release.directory}/{name}"
        if found and found.text == desired[name]:
            show(f"Will set mode {FILE_MODE:o} and owner root on {path}")
        else:
            show_diff(path, found.text if found else None, desired[name])
    for name in sorted(strangers):
        show(f"Will remove {release.directory}/{name}: it is no part of the release")
    yield from change(place([placement.tree(release.directory, desired, FILE_MODE)]))
