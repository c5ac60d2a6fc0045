"""Whether a container can follow the links of a composed model: it sees only what is mounted."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping, Sequence

from .errors import Unmet
from .launch import Mount
from .links import Link

_MOST_LINKS = 40
"""Links that the kernel follows in one path (path_resolution(7))."""
_SHOWN = 3


def check(plan: Mapping[str, Link], mounts: Sequence[Mount]) -> None:
    """Unmet names the links of the plan that lead to a place outside of the mounts."""
    sight = _Sight(mounts)
    wrong = [
        f"{name} ({why})"
        for name, link in plan.items()
        if link.kind == "symbolic" and (why := sight.why_not(link.target))
    ]
    if not wrong:
        return
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    seen = ", ".join(mount.target for mount in mounts)
    raise Unmet(
        f"the container can't open {', '.join(wrong[:_SHOWN])}{more}; it sees {seen} and nothing "
        "else of this node: keep the files themselves there, as hf download does, or let "
        "vllm_hf_cache name a folder that holds both"
    )


class _OutsideError(Exception):
    """``str()`` says what is wrong with a path."""


class _Sight:
    """Follows paths as the container does: links are read on the node, mount by mount."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        longest_first = sorted(mounts, key=lambda mount: len(mount.target), reverse=True)
        self._mounts = [(m.target, os.path.realpath(m.source)) for m in longest_first]
        self._plain: set[str] = set()

    def why_not(self, path: str) -> str | None:
        """Why the container can't reach ``path``; None when it can."""
        try:
            self._follow(path)
        except _OutsideError as error:
            return str(error)
        return None

    def _follow(self, path: str) -> None:
        at, parts, links = "", path.split("/"), 0
        while parts:
            part = parts.pop(0)
            if part in ("", ".", ".."):
                at = posixpath.dirname(at).rstrip("/") if part == ".." else at
                continue
            if not self._is_seen(f"{at}/{part}"):
                raise _OutsideError(f"it leads to {'/'.join([at, part, *parts])}")
            target = self._target(f"{at}/{part}")
            if target is None:
                at = f"{at}/{part}"
                continue
            links += 1
            if links > _MOST_LINKS:
                raise _OutsideError("its links lead in a circle")
            at = "" if target.startswith("/") else at
            parts = [*target.split("/"), *parts]

    def _target(self, path: str) -> str | None:
        """What the link at ``path`` says; None when there is no link."""
        if path in self._plain:
            return None
        host = self._host(path)
        try:
            return os.readlink(host) if host else None  # noqa: PTH115 (5,000 files)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise _OutsideError(f"{path}: {error.strerror}") from None
        self._plain.add(path)
        return None

    def _is_seen(self, path: str) -> bool:
        """Whether ``path`` is in a mount, or above one: docker makes the folders to mount on."""
        return any(f"{path}/".startswith(f"{target}/") for target, _ in self._mounts) or any(
            target.startswith(f"{path}/") for target, _ in self._mounts
        )

    def _host(self, path: str) -> str | None:
        """Where ``path`` lies on the node, None for a mount itself or what is above it."""
        inside = ((t, s) for t, s in self._mounts if path.startswith(f"{t}/"))
        target, source = next(inside, ("", None))
        return source + path[len(target) :] if source is not None else None
