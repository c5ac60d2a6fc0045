"""The agent as one file: a zip archive that Python runs, equal byte for byte wherever made."""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path

_SHEBANG = b"#!/usr/bin/python3 -I\n"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
_MAIN = b"""\
import sys

if sys.version_info < (3, 10):
    sys.exit("the agent needs Python 3.10 or newer, this is " + sys.version.split()[0])

from pyinfra_vllm.agent.__main__ import main

sys.exit(main())
"""


def _members() -> dict[str, bytes]:
    folder = Path(__file__).resolve().parent / "agent"
    members = {
        f"pyinfra_vllm/agent/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*.py")
    }
    return {"__main__.py": _MAIN, "pyinfra_vllm/__init__.py": b"", **members}


@cache
def archive() -> bytes:
    """Content of ``agent.pyz``.

    Sorted names, fixed times and modes, and no compression, whose output
    depends on the version of zlib.
    """
    buffer = io.BytesIO(_SHEBANG)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as bundle:
        for name, content in sorted(_members().items()):
            member = zipfile.ZipInfo(name, _FIRST_TIME)
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            bundle.writestr(member, content)
    return buffer.getvalue()


def archive_digest() -> str:
    """sha256 of :func:`archive`, 64 hexadecimal digits."""
    return hashlib.sha256(archive()).hexdigest()
