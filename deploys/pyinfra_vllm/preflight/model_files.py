"""Checks of the model's files: the snapshots in the cache, and the node's own copies."""

from __future__ import annotations

import posixpath

from pyinfra_vllm import model
from pyinfra_vllm.agent.engram import REMEDY
from pyinfra_vllm.node.models import Snapshot
from pyinfra_vllm.preflight.finding import Place, Results, fail, gib, ok, unknown, warn
from pyinfra_vllm.preflight.storage import is_below

_MAKE = "pyinfra INVENTORY deploys/engram.py --data recipe=NAME"


def snapshot(place: Place) -> Results:
    """Every repository of the model is in the cache, with all its files."""
    hub = place.node.hf_cache
    answers = place.state.snapshots.required
    composed = place.recipe.composed_model
    own = composed.local_files if composed else ()
    whole = all(found.complete for found in answers)
    if whole and not own and not model.has_weights(place.recipe, answers):
        remedy = "deploys/model.py fetches the rest"
        yield fail(f"the model in {hub} has no weights", "its download did not end", remedy)
        return
    for repo, pin in model.repos(place.recipe):
        found = place.state.snapshot(repo, pin)
        fetch = f"hf download {repo} --cache-dir {hub}" + (f" --revision {pin}" if pin else "")
        if found is None or not found.hub_exists:
            continue
        if not found.exists or found.revision is None:
            yield fail(f"{repo} is not in {hub}", "", f"deploys/model.py fetches it, or {fetch}")
        elif not found.complete:
            first = found.missing[0] if found.missing else "all files"
            yield fail(
                f"{found.path} is incomplete, {len(found.missing)} missing ({first})", "",
                f"fetch the rest: {fetch}",
            )  # fmt: skip
        elif outside := _outside(place, found):
            name, target = outside[0]
            more = f" (and {len(outside) - 1} more)" if len(outside) > 1 else ""
            yield fail(
                f"{found.path}/{name} links to {target}, out of {hub}{more}",
                "and the container sees only what is mounted",
                f"fetch it anew: rm {found.path}/{name}; {fetch}",
            )
        elif found.unfinished:
            yield warn(
                f"{len(found.unfinished)} downloads of {repo} have not ended", "of any revision",
                f"if nobody fetches now: {fetch}",
            )  # fmt: skip
        else:
            yield ok(f"{repo} at {found.revision[:12]}, {len(found.entries)} files")


def _outside(place: Place, snapshot: Snapshot) -> list[tuple[str, str]]:
    """Entries, each with its target, that link to where the container has no mount."""
    found = []
    for name, entry in snapshot.entries.items():
        target = entry.target or ""
        whole = posixpath.normpath(f"{snapshot.path}/{posixpath.dirname(name)}/{target}")
        # Without composed model the cache has another path inside: only relative links lead there.
        is_absolute = target.startswith("/")
        if is_absolute and place.recipe.composed_model:
            whole = posixpath.normpath(target)
        elif is_absolute:
            whole = ""
        if target and not is_below(whole, place.node.hf_cache):
            found.append((name, target))
    return found


def local_files(place: Place) -> Results:
    """The node's own copies are plain files: a hard link is the copy itself."""
    composed = place.recipe.composed_model
    for local in composed.local_files if composed else ():
        found = place.state.local_file(local.host)
        if found is None:
            make = f"{_MAKE} makes Engram copies"
            yield fail(f"{local.host} is missing (composed_model.local_files)", "", make)
        elif found.type != "file":
            yield fail(f"{local.host} is a {found.type}", "a plain file is needed for a hard link")
        else:
            yield ok(f"{local.host}, {gib(found.allocated)} on disk")


def engram(place: Place) -> Results:
    """Copies of Engram shards have what this rank reads: a hole reads as zeros, with no error."""
    composed = place.recipe.composed_model
    for local in composed.local_files if composed else ():
        there = place.state.local_file(local.host)
        if there is None or there.type != "file" or not local.host.endswith(".safetensors"):
            continue
        found = place.state.copies.required.get(local.host)
        if found is None:
            yield unknown(f"{local.host} could not be compared with the model in the cache")
        elif found.refused:
            why = found.refused[0].removesuffix(f"; {REMEDY}")
            yield fail(f"{local.host}: {why}", "", f"{_MAKE} makes or tops it up")
        else:
            yield ok(f"{local.host} {found.good}")
