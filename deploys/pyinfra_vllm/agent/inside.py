"""Look at a model from inside the container that runs: its files open, its mounts are read-only.

The job enters the root of the container's process and takes its user, so it sees what the engine
sees and needs no program in the image.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import container, docker, launch, pace, paths, snapshot
from .errors import Unmet
from .jobs import Say
from .launch import Launch

_AGAIN = pace.seconds(0.5)
"""Seconds between two questions whether the container runs yet."""
_TELL_EVERY = 500
_SHOWN = 3


def look(gang: str, release: str, say: Say) -> None:
    """The job: says ``{"seen": what is wrong}``, "" for nothing.

    Also for a container that ends meanwhile, whose exit code says more, and for an agent that
    may not look (it isn't root), which is noted.
    """
    try:
        rank = launch.load(paths.here(f"{paths.releases(gang)}/{release}"), gang)
        names = snapshot.files_below(Path(rank.composed)) if rank.composed else ()
        process = _Process.of(_wait_for_pid(rank, say))
        process.enter()
    except ProcessLookupError:
        say(seen="")
        return
    except PermissionError as error:
        say(note=f"the model is not looked at from inside the container: {error.strerror}")
        say(seen="")
        return
    except (Unmet, OSError) as error:
        say(seen=f"the model can't be looked at from inside the container: {error}")
        return
    wrong = "; ".join([*_writable(rank), *_closed(rank, names, say)])
    if rank.composed and not wrong:
        say(note=f"all {len(names)} files of the model open inside the container, read-only")
    say(seen=wrong)


def _wait_for_pid(rank: Launch, say: Say) -> int:
    while True:
        say(step="waits for docker to start the container")
        with contextlib.suppress(Unmet):
            pid = int(docker.ask(container.pid_of(rank.container))[0])
            if pid:
                return pid
        time.sleep(_AGAIN)


@dataclass(frozen=True)
class _Process:
    """The container's first process: user and groups; its root is open as ``root``."""

    user: int
    groups: tuple[int, ...]
    root: int

    @staticmethod
    def of(pid: int) -> _Process:
        """ProcessLookupError when it has ended."""
        folder = Path(f"/proc/{pid}")
        try:
            root = os.open(folder / "root", os.O_PATH)
            lines = (folder / "status").read_text().splitlines()
        except FileNotFoundError:
            raise ProcessLookupError(pid) from None
        said = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
        groups = (int(said["Gid"][1]), *map(int, said["Groups"]))
        return _Process(int(said["Uid"][1]), groups, root)

    def enter(self) -> None:
        """Make its root and its user those of this process, for good."""
        os.fchdir(self.root)
        os.chroot(".")
        os.setgroups(self.groups)
        os.setgid(self.groups[0])
        os.setuid(self.user)


def _writable(rank: Launch) -> Iterable[str]:
    for mount in rank.mounts:
        try:
            if mount.read_only and not os.statvfs(mount.target).f_flag & os.ST_RDONLY:
                yield f"{mount.target} can be written to inside the container"
        except OSError as error:
            yield f"{mount.target} is not there inside the container: {error.strerror}"


def _closed(rank: Launch, names: Iterable[str], say: Say) -> Iterable[str]:
    """What of the composed model doesn't open."""
    target = next((m.target for m in rank.mounts if m.source == rank.composed), None)
    wrong = []
    for number, name in enumerate(names if target else ()):
        if number % _TELL_EVERY == 0:
            say(step=f"opens the files of {target} inside the container")
        try:
            os.close(os.open(f"{target}/{name}", os.O_RDONLY))
        except OSError as error:
            wrong.append(f"{target}/{name}{_link(f'{target}/{name}')}: {error.strerror}")
    if wrong:
        more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        yield f"inside the container, {'; '.join(wrong[:_SHOWN])}{more}"


def _link(path: str) -> str:
    try:
        return f" (a link to {os.readlink(path)})"  # noqa: PTH115
    except OSError:
        return ""
