"""Where recipes and templates are looked for: the working directory wins over the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def roots(kind: str) -> tuple[Path, ...]:
    """Existing folders of ``kind`` (``recipes`` or ``templates``), the first one wins.

    The working directory comes first, then what the wheel carries; in a
    checkout, where nothing is copied into the package, the checkout's own.
    """
    candidates = [Path.cwd() / kind, _PACKAGE / "share" / kind, _PACKAGE.parents[1] / kind]
    found: list[Path] = []
    for folder in candidates:
        if folder.is_dir() and not any(folder.samefile(other) for other in found):
            found.append(folder)
    return tuple(found)


def find(kind: str, *parts: str) -> Path | None:
    """First existing ``parts`` below the roots of ``kind``, or None."""
    for root in roots(kind):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    return None
