"""Operation: the files of a release on a node."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import host
from pyinfra.api import operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.node.models import FileState
from pyinfra_vllm.node.state import NodeState
from pyinfra_vllm.operations.common import (
    Commands,
    change,
    look,
    look_at_gang,
    place,
    show,
    show_file,
    this_node,
)
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.pruning import old_releases
from pyinfra_vllm.release import FILE_MODE, Release, release_directory
from pyinfra_vllm.running import runs_here

_FOLDER = "0755"


@operation()
@changing
def staged(release: Release) -> Commands:
    """All files of the release in its own directory; what serves now is not touched.

    + release: what the gang is to serve
    """
    desired = release.files(this_node(release))
    here = look(release)
    found_release = here.release(release.digest)
    present = found_release.files if found_release else {}
    wrong = {name for name, text in desired.items() if not file_is_right(present.get(name), text)}
    strangers = set(present) - set(desired)
    folder = found_release is not None and (found_release.mode, found_release.owner)
    if not wrong and not strangers and folder == (_FOLDER, "root"):
        return
    if folder and folder != (_FOLDER, "root"):
        show(f"Will set mode {_FOLDER} and owner root on {release.directory}")
    before = _before(here)
    for name in sorted(wrong):
        path = f"{release.directory}/{name}"
        show_file(path, present.get(name), desired[name], FILE_MODE, before.get(name))
    for name in sorted(strangers):
        show(f"Will remove {release.directory}/{name}: it is no part of the release")
    yield from change(place([placement.tree(release.directory, desired, FILE_MODE)]))


def _before(state: NodeState) -> Mapping[str, FileState]:
    """Files of the release that this node started last."""
    current = state.current_release
    found = state.release(current) if current else None
    return found.files if found else {}


@operation()
@changing
def named(release: Release) -> Commands:
    """``current`` names the release that runs; the agent moves it at its starts alone.

    + release: what the gang is to serve
    """
    here = look(release)
    if here.current_release == release.digest or not runs_here(release, here):
        return
    path = paths.current(release.content.gang.name)
    show(f"Will let {path} name release {release.digest[:12]}, which runs")
    yield from change(place([placement.link(path, f"releases/{release.digest}")]))


@operation()
@changing
def pruned(release: Release) -> Commands:
    """No release is left that nobody would go back to.

    + release: what the gang is to serve
    """
    states = look_at_gang(release)
    old = old_releases(release, states).get(host.name)
    if not old:
        return
    for digest in old:
        show(f"Will remove release {digest[:12]}: neither in use nor among the newest")
    gang = release.content.gang.name
    yield from change(place([placement.remove(release_directory(gang, digest)) for digest in old]))
