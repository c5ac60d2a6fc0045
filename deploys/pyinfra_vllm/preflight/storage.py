"""Checks of file systems: the cache, hard links, ageing, room on disks."""

from __future__ import annotations

from pyinfra_vllm.agent import paths
from pyinfra_vllm.node.models import PathState
from pyinfra_vllm.preflight.finding import GIB, Place, Results, fail, gib, ok, unknown, warn

_SHARED_TYPES = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "9p", "beegfs")
_RELEASES_NEED = GIB // 4


def hf_cache(place: Place) -> Results:
    """The folder of the cache is there. A deploy before the NAS is mounted sees none."""
    hub = place.node.hf_cache
    answers = place.state.snapshots.required
    if answers and not all(answer.hub_exists for answer in answers):
        yield fail(f"{hub} (vllm_hf_cache) is not there", "", "mount it, or correct the inventory")
        return
    mount = place.state.mounts.value_or({}).get(hub)
    shown = f" on {mount.source} ({mount.type})" if mount else ""
    yield ok(f"{hub} is there{shown}")


def hard_links(place: Place) -> Results:
    """A hard link crosses no file system, and no bind mount that the unit's sandbox makes."""
    unit = place.state.unit.required
    if unit.protect_system == "strict" or unit.private_tmp:
        what = "PrivateTmp=yes" if unit.private_tmp else "ProtectSystem=strict"
        yield fail(
            f"the unit has {what} (drop-ins: {', '.join(unit.drop_ins) or 'none'})",
            "and a hard link can't leave that sandbox", "remove that line, systemctl daemon-reload",
        )  # fmt: skip
    composed = place.recipe.composed_model
    for local in composed.local_files if composed else ():
        found = place.state.local_file(local.host)
        if found and found.type == "file" and not local.copied:
            yield from _link(place, local.host, found)


def _link(place: Place, path: str, found: PathState) -> Results:
    mounts = place.state.mounts.value_or({})
    here, there = mounts.get(path), mounts.get(paths.COMPOSED_ROOT)
    if found.device != place.state.disks.required["/tmp"].device:
        yield fail(
            f"{path} and {paths.COMPOSED_ROOT} are on different file systems",
            "and a hard link can't cross them",
            "put /tmp on the same one (is it a tmpfs? systemctl mask tmp.mount)",
        )
    elif here and there and here.mount_point != there.mount_point:
        yield fail(
            f"{path} is below the mount {here.mount_point}, {paths.COMPOSED_ROOT} below "
            f"{there.mount_point}", "and a hard link can't cross them though the disk is the same",
            f"umount {max(here.mount_point, there.mount_point, key=len)}",
        )  # fmt: skip
    else:
        yield ok(f"{path} can be linked into {paths.COMPOSED_ROOT}")


def ageing(place: Place) -> Results:
    """systemd-tmpfiles removes old files; our own rule keeps two folders out of that."""
    composed = place.recipe.composed_model
    kept = (paths.COMPOSED_ROOT, paths.ENGRAM_ROOT)
    aged = [rule for rule in place.state.ageing.required if rule.age and rule.type[0] not in "xX"]
    exempt = [rule.path for rule in place.state.ageing.required if rule.type[0] in "xX"]
    for local in composed.local_files if composed else ():
        rule = next((r for r in aged if is_below(local.host, r.path)), None)
        if rule and not any(is_below(local.host, path) for path in (*kept, *exempt)):
            folder = local.host.rpartition("/")[0]
            yield warn(
                f"{local.host} is below {rule.path}, where files older than {rule.age} go", "",
                f"echo 'x {folder}' | sudo tee /etc/tmpfiles.d/keep-models.conf",
            )  # fmt: skip
            return
    yield ok("nothing of the gang's is aged away")


def is_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or in it, as text."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def local_caches(place: Place) -> Results:
    """Compile caches and releases are the node's own: shared over a network they break."""
    for path in (paths.CACHE_ROOT, paths.STATE_ROOT):
        mount = place.state.mounts.required.get(path)
        if mount is None:
            yield unknown(f"the mount of {path} is not known")
        elif mount.type in _SHARED_TYPES:
            yield fail(
                f"{path} is on {mount.source} ({mount.type})", "it must be the node's own disk",
                f"umount {mount.mount_point}",
            )  # fmt: skip
        else:
            yield ok(f"{path} is on {mount.type}")


def disk_releases(place: Place) -> Results:
    """Room for releases, history and evidence."""
    free = place.state.disks.required[paths.STATE_ROOT].free
    measured = f"{gib(free)} are free on {paths.STATE_ROOT}"
    if free >= _RELEASES_NEED:
        yield ok(measured)
    else:
        yield fail(measured, f"{gib(_RELEASES_NEED)} are needed", "df -h / && sudo apt-get clean")
