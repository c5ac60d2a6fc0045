"""Images that tests describe: a templates/ folder in a working directory of their own."""

from __future__ import annotations

from pathlib import Path

PROFILE = """
versions = {vllm = "1.0"}

[[images]]
name = "base"
reference = "toy/base:1"

[target]
machine = "x86_64"
python = "3.11"
"""

TEMPLATE = """FROM {{ image("base") }}
COPY note.txt /
RUN verify {{ profile.checks()|join(" ") }}
"""


def toy(root: Path, profile: str = PROFILE, template: str = TEMPLATE) -> Path:
    """``templates/images/toy`` with profile ``one`` below ``root``; returns the folder."""
    folder = root / "templates" / "images" / "toy"
    (folder / "profiles").mkdir(parents=True)
    (folder / "context").mkdir()
    (folder / "Dockerfile.j2").write_text(template)
    (folder / "profiles" / "one.toml").write_text(profile)
    (folder / "context" / "note.txt").write_text("hello\n")
    return folder


def plain(root: Path, name: str = "plain") -> Path:
    """``templates/images/<name>`` with a plain Dockerfile and one script below ``root``."""
    folder = root / "templates" / "images" / name
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY start.sh /\n")
    (folder / "start.sh").write_text("#!/bin/sh\nexec true\n")
    return folder
