"""Operation: who belongs to the gang, as the agents read it."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import operation

from pyinfra_vllm import placement
from pyinfra_vllm.agent import paths
from pyinfra_vllm.changes import file_is_right
from pyinfra_vllm.facts.inventory import members
from pyinfra_vllm.moves import move
from pyinfra_vllm.node.models import FileState
from pyinfra_vllm.operations.common import (
    Commands,
    change,
    look,
    look_at_gang,
    place,
    show_file,
    this_node,
)
from pyinfra_vllm.operations.lock import changing
from pyinfra_vllm.release import FILE_MODE, Release
from pyinfra_vllm.unit_files import members_text


@operation()
@changing
def known(release: Release) -> Commands:
    """Every node knows its rank and where the others are; running agents read it at their start.

    Not when ranks move: who would learn it before the old head has stopped would leave it.

    + release: what the gang is to serve
    """
    gang = release.content.gang
    path = paths.members(gang.name)
    found, text = found_and_wanted(release)
    if file_is_right(found, text) or move(gang, look_at_gang(release)):
        return
    show_file(path, found, text, FILE_MODE)
    yield from change(place([placement.file(path, text, FILE_MODE)]))


def found_and_wanted(release: Release) -> tuple[FileState | None, str]:
    """``gang.json`` as this node has it, and the text that it is to have."""
    gang = release.content.gang
    found = look(release).file(paths.members(gang.name))
    most = len(members(host).of(gang.name))
    return found, members_text(gang, this_node(release), found.text if found else None, most)
